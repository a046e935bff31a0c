"""Changes of the configuration as differences, and the pages of everything that stand in where there is none."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from lab.ledger.ledger import MemoryLedger
from surehook.core.model import Configuration, EndpointHealth, EventType
from surehook.delivery.loading import read_all
from surehook.ledgers import changes as notes
from surehook.ledgers.sqlite import SqliteLedger
from surehook.ports.registry import ApiKey, Changes

from .desk import Desk
from .making import NOW

LIMIT = 100


async def difference(desk: Desk, since: int, *, limit: int = LIMIT) -> Changes:
    found = await desk.ledger.changes(since, limit=limit)
    assert found is not None
    return found


async def raise_without_note(ledger: Any) -> None:
    """What a program from before there were notes does."""
    statement = "update configuration set version = version + 1"
    if isinstance(ledger, MemoryLedger):
        ledger.book.version += 1
    elif isinstance(ledger, SqliteLedger):
        await ledger._write(lambda session: session.run(statement))
    else:
        await ledger._write(lambda session: session.change(statement))


async def test_nothing_has_changed_since_the_version_that_is(desk: Desk) -> None:
    version = await desk.ledger.version()
    assert await difference(desk, version) == Changes(version)


async def test_each_kind_of_row_is_told_as_it_is_now(desk: Desk) -> None:
    since = await desk.ledger.version()
    tenant = structs.replace(desk.make.tenant("globex"), strict=True)
    kind = EventType("a.b", None, b"{}", "2", b'"signing"', NOW)
    endpoint = desk.make.endpoint(tenant="globex")
    secret = desk.make.secret(endpoint.id)
    await desk.ledger.add_tenant(tenant)
    await desk.ledger.add_event_type(kind)
    await desk.ledger.add_endpoint(endpoint, secret)
    await desk.ledger.change_endpoint(endpoint.id, {"status": "paused"}, now=NOW + 1)
    found = await difference(desk, since)
    paused = structs.replace(endpoint, status="paused", updated_at=NOW + 1)
    assert found == Changes(
        await desk.ledger.version(), Configuration((tenant,), (paused,), (kind,), (secret,))
    )


async def test_a_rotated_secret_is_told_with_all_of_its_endpoint(desk: Desk) -> None:
    since = await desk.ledger.version()
    (old,) = await desk.ledger.secrets(desk.endpoint)
    new = desk.make.secret(desk.endpoint)
    await desk.ledger.rotate_secret(new, old_expires_at=NOW + 9)
    found = await difference(desk, since)
    assert [one.id for one in found.rows.endpoints] == [desk.endpoint]
    assert list(found.rows.secrets) == [structs.replace(old, expires_at=NOW + 9), new]
    assert list(await desk.ledger.secrets(desk.endpoint)) == list(found.rows.secrets)


async def test_what_is_gone_is_told(desk: Desk) -> None:
    since = await desk.ledger.version()
    await desk.ledger.add_tenant(desk.make.tenant("brief"))
    brief = await desk.new_endpoint(tenant="brief")
    await desk.ledger.remove_endpoint(brief)
    await desk.ledger.remove_endpoint(desk.endpoint)
    await desk.ledger.remove_tenant("brief")
    found = await difference(desk, since)
    assert set(found.gone_endpoints) == {brief, desk.endpoint}
    assert found.gone_tenants == ("brief",)
    assert found.rows == Configuration()


async def test_an_endpoint_that_results_have_turned_off_is_told(desk: Desk) -> None:
    since = await desk.ledger.version()
    await desk.record(health=[EndpointHealth(desk.endpoint, False, 1, None)])
    assert await difference(desk, since) == Changes(since)  # only counted
    await desk.record(health=[EndpointHealth(desk.endpoint, False, 1, None, "inactive", "gone")])
    (found,) = (await difference(desk, since)).rows.endpoints
    assert (found.id, found.status) == (desk.endpoint, "inactive")


async def test_several_endpoints_of_one_window_are_told(desk: Desk) -> None:
    other = await desk.new_endpoint()
    since = await desk.ledger.version()
    await desk.record(
        health=[EndpointHealth(id, False, 1, None, "inactive", "gone") for id in (other, desk.endpoint)]
    )
    found = (await difference(desk, since)).rows.endpoints
    assert {(one.id, one.status) for one in found} == {(other, "inactive"), (desk.endpoint, "inactive")}


async def test_many_changes_are_told_in_parts(desk: Desk) -> None:
    since = start = await desk.ledger.version()
    made = [await desk.new_endpoint() for _ in range(7)]
    told: list[bytes] = []
    while True:
        found = await difference(desk, since, limit=3)
        told += [one.id for one in found.rows.endpoints]
        since = found.version
        if not found.more:
            break
    assert told == made
    assert since == start + 7 == await desk.ledger.version()


async def test_a_key_changes_nothing_that_is_kept_in_memory(desk: Desk) -> None:
    since = await desk.ledger.version()
    await desk.ledger.add_key(ApiKey(desk.make.id(), b"\x07" * 32, "ci", NOW))
    assert await difference(desk, since) == Changes(since + 1)


async def test_a_version_without_a_note_is_no_difference(desk: Desk) -> None:
    """Whoever follows must read everything, whether the gap is the last change or one before it."""
    since = await desk.ledger.version()
    await raise_without_note(desk.ledger)
    assert await desk.ledger.changes(since, limit=LIMIT) is None
    await desk.new_endpoint()
    assert await desk.ledger.changes(since, limit=LIMIT) is None
    assert len((await difference(desk, since + 1)).rows.endpoints) == 1


async def test_a_memory_that_knows_nothing_or_too_much_is_told_no_difference(desk: Desk) -> None:
    assert await desk.ledger.changes(-1, limit=LIMIT) is None
    version = await desk.ledger.version()
    assert await desk.ledger.changes(version + 1, limit=LIMIT) is None  # the ledger was put back


@pytest.mark.parametrize("limit", [1, 2, 3, 50])
async def test_pages_hold_everything_once(desk: Desk, limit: int) -> None:
    for name in ("globex", "initech"):
        await desk.ledger.add_tenant(desk.make.tenant(name))
        await desk.new_endpoint(tenant=name)
        await desk.ledger.add_event_type(EventType(name, None, None, "1", None, NOW))
    await desk.ledger.rotate_secret(desk.make.secret(desk.endpoint), old_expires_at=NOW + 1)
    whole = await read_all(desk.ledger)
    parts = Configuration()
    after: bytes | None = None
    while True:
        page = await desk.ledger.configuration(after, limit=limit)
        rows = page.rows
        assert max(len(rows.tenants), len(rows.endpoints), len(rows.event_types)) <= limit
        parts = Configuration(
            parts.tenants + rows.tenants,
            parts.endpoints + rows.endpoints,
            parts.event_types + rows.event_types,
            parts.secrets + rows.secrets,
        )
        after = page.next
        if after is None:
            break
    by_id = tuple(sorted(parts.secrets, key=lambda one: one.id))
    assert structs.replace(parts, secrets=by_id) == whole
    assert (len(whole.tenants), len(whole.endpoints), len(whole.event_types)) == (3, 3, 2)
    assert len(whole.secrets) == 4


# -- what notes explain -----------------------------------------------------------------------------------


def read(versions: list[int], *, since: int, newest: int, limit: int = LIMIT) -> int | None:
    """The version that memory would be at."""
    made = [(version, notes.ENDPOINT, bytes([place])) for place, version in enumerate(versions)]
    found = notes.read(made[: limit + 1], since=since, newest=newest, limit=limit)
    return None if found is None else found.version


def test_notes_must_explain_every_version() -> None:
    assert read([], since=4, newest=4) == 4
    assert read([5, 5, 6], since=4, newest=6) == 6
    assert read([], since=4, newest=5) is None
    assert read([6], since=4, newest=6) is None
    assert read([5, 7], since=4, newest=7) is None
    assert read([5], since=4, newest=6) is None


def test_a_version_is_told_whole_or_not_at_all() -> None:
    assert read([5, 6, 6], since=4, newest=6, limit=2) == 5
    # More than a reading holds: everything is read.
    assert read([5, 5, 5], since=4, newest=5, limit=2) is None
    assert read([5, 6, 7], since=4, newest=7, limit=2) == 6
