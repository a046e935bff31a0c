"""Configuration: every change raises the version in its own transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec import structs

from surehook.core.authentication import Authentication, Basic, Bearer, ClientCredentials, KeyHeader
from surehook.core.errors import Problem
from surehook.core.model import EndpointTls, EventType, Tenant
from surehook.delivery.loading import read_all
from surehook.ports.registry import ApiKey

from .desk import Desk
from .making import NOW


def _event_type(name: str = "document.signed", **fields: Any) -> EventType:
    plain = EventType(name, None, None, "1", None, NOW)
    return structs.replace(plain, **fields)


async def _rotate(desk: Desk) -> None:
    await desk.ledger.rotate_secret(desk.make.secret(desk.endpoint), old_expires_at=NOW + 1)


CHANGES: dict[str, Callable[[Desk], Awaitable[Any]]] = {
    "add_tenant": lambda desk: desk.ledger.add_tenant(desk.make.tenant("globex")),
    "change_tenant": lambda desk: desk.ledger.change_tenant("acme", {"name": "Acme 2", "strict": True}),
    "remove_tenant": lambda desk: desk.ledger.remove_tenant("empty"),
    "add_event_type": lambda desk: desk.ledger.add_event_type(_event_type("new")),
    "change_event_type": lambda desk: desk.ledger.change_event_type("there", {"schema_version": "2"}),
    "add_endpoint": lambda desk: desk.new_endpoint(),
    "change_endpoint": lambda desk: desk.ledger.change_endpoint(desk.endpoint, {"status": "paused"}, now=NOW),
    "remove_endpoint": lambda desk: desk.ledger.remove_endpoint(desk.endpoint),
    "rotate_secret": _rotate,
    "add_key": lambda desk: desk.ledger.add_key(ApiKey(desk.make.id(), b"\x07" * 32, "ci", NOW)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
async def test_a_change_raises_the_version(desk: Desk, change: Callable[[Desk], Awaitable[Any]]) -> None:
    await desk.ledger.add_tenant(desk.make.tenant("empty"))
    await desk.ledger.add_event_type(_event_type("there"))
    before = await desk.ledger.version()
    await change(desk)
    after = await desk.ledger.version()
    assert after > before


async def test_a_change_of_what_is_for_people_alone_raises_no_version(desk: Desk) -> None:
    await desk.ledger.add_event_type(_event_type("there"))
    version = await desk.ledger.version()
    assert (await desk.ledger.change_tenant("acme", {"name": "Acme 2"})).name == "Acme 2"
    assert (await desk.ledger.change_event_type("there", {"description": "d"})).description == "d"
    described = await desk.ledger.change_endpoint(desk.endpoint, {"description": "e"}, now=NOW + 1)
    assert (described.description, described.updated_at) == ("e", NOW + 1)
    assert await desk.ledger.version() == version


NOTHINGS: dict[str, tuple[Callable[[Desk], Awaitable[Any]], Any]] = {
    "change_tenant": (lambda desk: desk.ledger.change_tenant("nobody", {"name": "x"}), None),
    "remove_tenant": (lambda desk: desk.ledger.remove_tenant("nobody"), False),
    "change_event_type": (lambda desk: desk.ledger.change_event_type("none", {"description": "x"}), None),
    "change_endpoint": (
        lambda desk: desk.ledger.change_endpoint(desk.make.id(), {"url": "x"}, now=NOW),
        None,
    ),
    "remove_endpoint": (lambda desk: desk.ledger.remove_endpoint(desk.make.id()), None),
}


@pytest.mark.parametrize(("change", "answer"), NOTHINGS.values(), ids=NOTHINGS.keys())
async def test_changing_what_is_not_there_changes_nothing(
    desk: Desk, change: Callable[[Desk], Awaitable[Any]], answer: Any
) -> None:
    before = await read_all(desk.ledger)
    assert await change(desk) == answer
    assert await read_all(desk.ledger) == before


async def test_a_snapshot_holds_everything_the_hot_path_needs(desk: Desk) -> None:
    before = await read_all(desk.ledger)
    tenant = structs.replace(desk.make.tenant("globex"), strict=True)
    kind = _event_type(
        description="d", schema=b"{}", schema_version="4", policy=b'"signing"', schemas=b'{"5":{}}'
    )
    endpoint = desk.make.endpoint(
        tenant="globex",
        event_types=("a.*", "b"),
        policy=b'{"profile":"yousign"}',
        headers={"x-one": "1", "x-two": "ü"},
        description="back office",
        order="none",
    )
    secret = desk.make.secret(endpoint.id, expires_at=NOW + 5)
    await desk.ledger.add_tenant(tenant)
    await desk.ledger.add_event_type(kind)
    await desk.ledger.add_endpoint(endpoint, secret)
    after = await read_all(desk.ledger)
    assert set(after.tenants) == {*before.tenants, tenant}
    assert after.event_types == (kind,)
    assert [one for one in after.endpoints if one.id == endpoint.id] == [endpoint]
    assert [one for one in after.secrets if one.endpoint == endpoint.id] == [secret]


CREDENTIALS: list[Authentication | None] = [
    None,
    Basic("ü", ""),
    Bearer("t.o-k"),
    KeyHeader("X-Key", "v"),
    ClientCredentials("https://token.example/t", "me", "s"),
    ClientCredentials("https://token.example/t", "me", "s", ("a", "b"), "aud", "body"),
]


@pytest.mark.parametrize("authentication", CREDENTIALS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("tls", [None, EndpointTls(), EndpointTls("ca"), EndpointTls(None, "cert", "key")])
async def test_a_custom_request_is_kept_as_it_was_given(desk: Desk, authentication: Any, tls: Any) -> None:
    given = desk.make.endpoint(method="PUT", authentication=authentication, tls=tls)
    await desk.ledger.add_endpoint(given, desk.make.secret(given.id))
    assert await desk.ledger.endpoint(given.id) == given
    assert given in (await read_all(desk.ledger)).endpoints
    assert given in (await desk.ledger.endpoints(tenant=None, status=None, limit=9, after=None)).data
    plain = {"method": "POST", "authentication": None, "tls": None}
    changed = await desk.ledger.change_endpoint(given.id, plain, now=NOW)
    assert changed == structs.replace(given, **plain)
    again = {"authentication": authentication, "tls": tls}
    assert await desk.ledger.change_endpoint(given.id, again, now=NOW) == structs.replace(
        given, method="POST"
    )


# -- tenants ----------------------------------------------------------------------------------------------


async def test_a_tenant_is_added_once(desk: Desk) -> None:
    version = await desk.ledger.version()
    with pytest.raises(Problem) as refused:
        await desk.ledger.add_tenant(structs.replace(desk.make.tenant(), name="other"))
    assert (refused.value.code, refused.value.status) == ("tenant_exists", 409)
    assert (await desk.ledger.tenant("acme")).name == "Acme"
    assert await desk.ledger.version() == version


async def test_a_changed_tenant_is_answered_as_it_is_now(desk: Desk) -> None:
    changed = await desk.ledger.change_tenant("acme", {"name": "New", "strict": True})
    assert changed == Tenant("acme", "New", True, NOW)
    assert await desk.ledger.tenant("acme") == changed
    assert await desk.ledger.tenant("nobody") is None


async def test_a_tenant_in_use_stays(desk: Desk) -> None:
    """First its endpoint keeps it, then its unfinished delivery, then nothing."""

    async def refused() -> bool:
        with pytest.raises(Problem) as problem:
            await desk.ledger.remove_tenant("acme")
        return (problem.value.code, problem.value.status) == ("tenant_in_use", 409)

    assert await refused()
    delivery = await desk.publish_one()
    await desk.ledger.remove_endpoint(desk.endpoint)
    assert await refused()
    await desk.ledger.end([delivery], state="cancelled", reason="deleted", notices=[], now=NOW)
    assert await desk.ledger.remove_tenant("acme") is True
    assert await desk.ledger.tenant("acme") is None
    assert await desk.ledger.remove_tenant("acme") is False


async def test_tenants_are_listed_newest_first(desk: Desk) -> None:
    for place, name in enumerate(("zeta", "beta", "mid")):
        await desk.ledger.add_tenant(structs.replace(desk.make.tenant(name), created_at=NOW + 1 + place))
    for limit in (1, 2, 3, 50):
        listed = await desk.everything(_plain(desk.ledger.tenants), None, limit=limit)
        assert [one.id for one in listed] == ["mid", "beta", "zeta", "acme"]


def _plain(listing: Any) -> Any:
    """A list without a filter, in the shape of the filtered ones."""
    return lambda where, *, limit, after: listing(limit=limit, after=after)


# -- event types ------------------------------------------------------------------------------------------


async def test_an_event_type_is_added_once(desk: Desk) -> None:
    kind = _event_type()
    await desk.ledger.add_event_type(kind)
    with pytest.raises(Problem) as refused:
        await desk.ledger.add_event_type(_event_type(description="other"))
    assert (refused.value.code, refused.value.status) == ("event_type_exists", 409)
    assert await desk.ledger.event_type("document.signed") == kind
    assert await desk.ledger.event_type("nothing") is None


async def test_a_changed_event_type_is_answered_as_it_is_now(desk: Desk) -> None:
    await desk.ledger.add_event_type(_event_type(policy=b'"standard"'))
    changed = await desk.ledger.change_event_type("document.signed", {"schema": b"{}", "policy": None})
    assert changed == _event_type(schema=b"{}")
    assert await desk.ledger.event_type("document.signed") == changed


async def test_schemas_of_several_versions_are_kept_as_they_were_given(desk: Desk) -> None:
    kind = _event_type(schema=b"{}", schemas=b'{"2":{"type":"object"},"1.0":{}}')
    await desk.ledger.add_event_type(kind)
    assert await desk.ledger.event_type("document.signed") == kind
    assert kind in (await desk.ledger.event_types(limit=9, after=None)).data
    since = await desk.ledger.version()
    changed = await desk.ledger.change_event_type("document.signed", {"schemas": b"{}"})
    assert changed == _event_type(schema=b"{}", schemas=b"{}")
    found = await desk.ledger.changes(since, limit=9)
    assert found is not None and found.rows.event_types == (changed,)
    assert await desk.ledger.change_event_type("document.signed", {"schemas": None}) == _event_type(
        schema=b"{}"
    )


async def test_event_types_are_listed_newest_first(desk: Desk) -> None:
    names = ["b", "a", "c"]
    for place, name in enumerate(names):
        await desk.ledger.add_event_type(_event_type(name, created_at=NOW + place))
    for limit in (1, 2, 50):
        listed = await desk.everything(_plain(desk.ledger.event_types), None, limit=limit)
        assert [one.name for one in listed] == names[::-1]


# -- endpoints and secrets --------------------------------------------------------------------------------


async def test_a_changed_endpoint_is_answered_as_it_is_now(desk: Desk) -> None:
    before = await desk.ledger.endpoint(desk.endpoint)
    changes = {
        "url": "https://other.example/",
        "event_types": ("a", "b.*"),
        "policy": b'"signing"',
        "status": "paused",
        "reason": "by hand",
        "failure_count": 0,
        "headers": {"x": "y"},
        "description": "d",
    }
    changed = await desk.ledger.change_endpoint(desk.endpoint, changes, now=NOW + 7)
    assert changed == structs.replace(before, **changes, updated_at=NOW + 7)
    assert await desk.ledger.endpoint(desk.endpoint) == changed
    back = await desk.ledger.change_endpoint(
        desk.endpoint, {"policy": None, "description": None}, now=NOW + 8
    )
    assert (back.policy, back.description, back.url) == (None, None, "https://other.example/")


async def test_an_endpoint_needs_its_tenant(desk: Desk) -> None:
    """The tenant may have been removed since the caller looked."""
    endpoint = desk.make.endpoint(tenant="nobody")
    version = await desk.ledger.version()
    with pytest.raises(Problem) as refused:
        await desk.ledger.add_endpoint(endpoint, desk.make.secret(endpoint.id))
    assert refused.value.code == "unknown_tenant"
    assert await desk.ledger.endpoint(endpoint.id) is None
    assert await desk.ledger.version() == version


async def test_a_removed_endpoint_takes_its_secrets_and_leaves_its_deliveries(desk: Desk) -> None:
    delivery = await desk.publish_one()
    there = await desk.ledger.endpoint(desk.endpoint)
    assert await desk.ledger.remove_endpoint(desk.endpoint) == there
    assert await desk.ledger.endpoint(desk.endpoint) is None
    configuration = await read_all(desk.ledger)
    assert (configuration.endpoints, configuration.secrets) == ((), ())
    assert await desk.state(delivery) == "scheduled"


async def test_endpoints_are_listed_newest_first_by_tenant_and_status(desk: Desk) -> None:
    await desk.ledger.add_tenant(desk.make.tenant("globex"))
    b = await desk.new_endpoint(status="paused")
    c = await desk.new_endpoint(tenant="globex")
    d = await desk.new_endpoint(tenant="globex", status="paused")

    async def listed(limit: int, **where: str | None) -> list[bytes]:
        def listing(_: None, *, limit: int, after: bytes | None) -> Any:
            filters = {"tenant": None, "status": None, **where}
            return desk.ledger.endpoints(**filters, limit=limit, after=after)

        return [one.id for one in await desk.everything(listing, None, limit=limit)]

    for limit in (1, 2, 50):
        assert await listed(limit) == [d, c, b, desk.endpoint]
        assert await listed(limit, tenant="globex") == [d, c]
        assert await listed(limit, status="paused") == [d, b]
        assert await listed(limit, tenant="acme", status="active") == [desk.endpoint]
        assert await listed(limit, tenant="nobody") == []


async def test_a_rotation_gives_the_old_secrets_their_end(desk: Desk) -> None:
    second, third = desk.make.secret(desk.endpoint), desk.make.secret(desk.endpoint, kind="v1a")
    other = await desk.new_endpoint()
    await desk.ledger.rotate_secret(second, old_expires_at=NOW + 100)
    await desk.ledger.rotate_secret(third, old_expires_at=NOW + 200)
    secrets = (await read_all(desk.ledger)).secrets
    mine = sorted((one for one in secrets if one.endpoint == desk.endpoint), key=lambda one: one.id)
    assert [one.expires_at for one in mine] == [NOW + 100, NOW + 200, None]
    assert mine[2] == third
    assert [one.expires_at for one in secrets if one.endpoint == other] == [None]


async def test_a_rotation_without_overlap_stops_every_other_secret(desk: Desk) -> None:
    second, third = desk.make.secret(desk.endpoint), desk.make.secret(desk.endpoint)
    at = third.created_at
    await desk.ledger.rotate_secret(second, old_expires_at=at + 100_000)
    await desk.ledger.rotate_secret(third, old_expires_at=at)
    secrets = (await read_all(desk.ledger)).secrets
    mine = sorted((one for one in secrets if one.endpoint == desk.endpoint), key=lambda one: one.id)
    assert [one.expires_at for one in mine] == [at, at, None]


async def test_keys_are_kept_as_digests(desk: Desk) -> None:
    key = ApiKey(desk.make.id(), b"\x07" * 32, "ci", NOW)
    assert list(await desk.ledger.keys()) == []
    await desk.ledger.add_key(key)
    assert list(await desk.ledger.keys()) == [key]
