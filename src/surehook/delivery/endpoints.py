"""Endpoints: make, change, pause, activate, rotate their secret, delete.

A URL is judged here for a clear answer at registration, and again at every attempt, since names move. Secrets
leave this file twice: when an endpoint is made and when its secret is rotated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from surehook.core import limits, signature, subscription
from surehook.core.authentication import Authentication
from surehook.core.errors import LedgerUnavailable, Problem
from surehook.core.model import Endpoint, EndpointTls, Method, Secret
from surehook.core.policy import parse_policy
from surehook.core.profiles import PROFILES
from surehook.core.receipt import Wanted
from surehook.delivery import custom_requests, header_conflicts, tenants
from surehook.delivery.chores import Chores
from surehook.delivery.loops import through_outages
from surehook.delivery.managing import Manager, new_id
from surehook.delivery.retry_end import begin_ending_retries

OVERLAP_S = 86_400  # an old secret signs on for a day after its rotation, unless told otherwise
# Active at once: one signature each, and the header has a bound (limits.SIGNATURE_HEADER_BYTES).
SECRETS_MAX = 8
END_ROWS = 500  # deliveries of a deleted endpoint ended in one transaction
END_ROUNDS = 10  # transactions before the rest is left to the background
# Changes after which work that waits may be sent: a look for it is two claims on every node, so no other asks for one.
MAY_SEND_NOW = frozenset({"status", "url", "authentication", "tls", "policy"})
# Fields that are judged by themselves: changing nothing else asks nothing of the endpoint before.
ALONE = frozenset({"event_types", "description", "status", "receipts", "method", "order"})


class New(Struct, frozen=True):
    """Fields that a caller gives of an endpoint to be made. `policy` is JSON, a name or an object."""

    tenant: str
    url: str
    event_types: Sequence[str]
    policy: bytes | None
    headers: Mapping[str, str]
    order: str
    description: str | None
    method: Method = "POST"
    authentication: Authentication | None = None
    tls: EndpointTls | None = None
    receipts: Wanted | None = None


async def create(manager: Manager, new: New) -> tuple[Endpoint, Secret]:
    """The endpoint and its secret. Raises Problem for the field that cannot be."""
    now = manager.clock.now()
    checked = await _checked(manager, _asked(new), tenant=new.tenant, before=None)
    await tenants.must_exist(manager, new.tenant)
    await _must_have_room(manager, new.tenant)
    endpoint = Endpoint(
        id=new_id(manager, now),
        tenant=new.tenant,
        url=checked["url"],
        event_types=checked["event_types"],
        policy=checked["policy"],
        status="active",
        reason=None,
        failure_count=0,
        order=checked["order"],
        headers=checked["headers"],
        description=new.description,
        created_at=now,
        updated_at=now,
        method=new.method,
        authentication=new.authentication,
        tls=checked["tls"],
        receipts=new.receipts,
    )
    secret = _new_secret(manager, endpoint.id, now)
    await manager.ledger.add_endpoint(endpoint, secret)
    await manager.changed()
    return endpoint, secret


async def _must_have_room(manager: Manager, tenant: str) -> None:
    """Raise Problem `too_many_endpoints` where the tenant has as many as one event may go to. Calls at the same time
    may pass it by as many as they are, which harms nobody."""
    if manager.directory.endpoints_of(tenant) >= limits.TENANT_ENDPOINTS:
        await manager.current()
        if manager.directory.endpoints_of(tenant) >= limits.TENANT_ENDPOINTS:
            raise Problem(
                "too_many_endpoints",
                f"a tenant has at most {limits.TENANT_ENDPOINTS} endpoints",
                field="tenant",
                hint="an event and its deliveries are stored as one; divide the endpoints among several tenants",
                status=409,
            )


async def find(manager: Manager, endpoint: bytes) -> Endpoint:
    return _there(await manager.ledger.endpoint(endpoint))


async def change(manager: Manager, chores: Chores, endpoint: bytes, changes: Mapping[str, Any]) -> Endpoint:
    """Set the given fields. Status `active` also forgets the failures and the reason; work that was parked
    for the old status drains."""
    before = None
    # A policy that comes with an event type may name headers, which are judged beside the endpoint's own.
    is_alone = "event_types" not in changes or not manager.directory.header_names()
    if changes and changes.keys() <= ALONE and is_alone:
        checked = _judged(changes)
    else:
        before = _there(await manager.ledger.endpoint(endpoint))
        if not changes:
            return before
        checked = await _checked(manager, changes, tenant=before.tenant, before=before)
    if checked.get("status") == "active":
        checked |= {"reason": None, "failure_count": 0}
    elif checked.get("status") == "paused":
        checked["reason"] = None
    if before is not None and checked.get("url", before.url) != before.url:
        checked["failure_count"] = 0  # it counts calls of the URL before
    changed = _there(await manager.ledger.change_endpoint(endpoint, checked, now=manager.clock.now()))
    await manager.changed()
    if before is not None and changed.policy != before.policy:
        begin_ending_retries(manager, chores, endpoint=endpoint)
    if checked.get("status") == "active":
        manager.probe_now(endpoint)
    if checked.keys() & MAY_SEND_NOW:
        manager.wake()
    return changed


async def remove(manager: Manager, chores: Chores, endpoint: bytes) -> None:
    """Delete the endpoint and cancel its open deliveries (reason `deleted`); a long backlog goes on being
    cancelled after the answer. Requests under way end as they end."""
    _there(await manager.ledger.remove_endpoint(endpoint))
    try:
        await manager.changed()
    except LedgerUnavailable:
        manager.endpoint_removed(endpoint)  # who asks again is told that there is none
        raise
    manager.wake()
    work, name = partial(end_all, manager, endpoint), "cancel deliveries of a deleted endpoint"
    if await _some_are_left(manager, endpoint) and not chores.begin(work, name=name, about=endpoint):
        manager.endpoint_removed(endpoint)


async def _some_are_left(manager: Manager, endpoint: bytes) -> bool:
    """Cancel a few rounds of its deliveries. It is deleted, whatever the ledger answers to that."""
    try:
        for _ in range(END_ROUNDS):
            if not await _end_some(manager, endpoint):
                return False
    except LedgerUnavailable:
        pass
    return True


async def end_all(manager: Manager, endpoint: bytes) -> None:
    """Cancel every unheld delivery of a deleted endpoint."""
    while await through_outages(manager.clock, partial(_end_some, manager, endpoint)):
        await manager.clock.sleep(0)


async def signing(manager: Manager, endpoint: bytes) -> list[Secret]:
    """The secrets that sign now."""
    now = manager.clock.now()
    every = await manager.ledger.secrets(endpoint)
    return [secret for secret in every if secret.expires_at is None or secret.expires_at > now]


async def rotate_secret(manager: Manager, endpoint: bytes, *, overlap_s: int) -> tuple[Endpoint, Secret]:
    """Give the endpoint a new secret. The one before it signs on for `overlap_s` seconds, and older ones for as long as they
    were given; 0 stops all of them at once."""
    found = await find(manager, endpoint)
    now = manager.clock.now()
    active = await signing(manager, endpoint)
    if overlap_s and len(active) >= SECRETS_MAX:
        raise Problem(
            "too_many_secrets",
            f"{len(active)} secrets of this endpoint are active",
            hint="wait until an overlap ends, or stop all others with an overlap of 0",
            status=409,
        )
    secret = _new_secret(manager, endpoint, now)
    await manager.ledger.rotate_secret(secret, old_expires_at=now + overlap_s * 1000)
    await manager.changed()
    manager.probe_now(endpoint)
    return found, secret


def missing() -> Problem:
    return Problem("not_found", "there is no endpoint with this id", status=404)


async def _checked(
    manager: Manager, given: Mapping[str, Any], *, tenant: str, before: Endpoint | None
) -> dict[str, Any]:
    """The given fields, judged: rules first, the addresses last, since those may ask the network."""
    checked = _judged(given)
    custom_requests.check(given, before)
    header_conflicts.check_endpoint(manager, checked, before)
    if "tls" in given:
        checked["tls"] = custom_requests.checked_tls(given["tls"])
    if "tls" in given or "url" in given:
        _check_tls(manager, checked, before)
    if "url" in given or "authentication" in given:
        with manager.caller_calls.during("check", tenant=tenant):
            if "url" in given:
                await manager.transport.check(given["url"], tenant=tenant)
            await custom_requests.check_token_url(manager, given, tenant=tenant)
    return checked


def _judged(given: Mapping[str, Any]) -> dict[str, object]:
    """The given fields, judged as far as each can be by itself."""
    judged = dict(given)
    if "event_types" in given:
        judged["event_types"] = subscription.check_filters(given["event_types"])
    if given.get("policy") is not None:
        parse_policy(given["policy"], PROFILES)
    if given.get("order", "none") != "none":
        raise Problem(
            "order_not_available",
            "only `none` is built in this version",
            field="order",
            hint='leave it out, or "none"',
        )
    return judged


def _check_tls(manager: Manager, checked: Mapping[str, Any], before: Endpoint | None) -> None:
    """Check the TLS that the endpoint would trust and show, at the address it would have."""
    tls = checked["tls"] if "tls" in checked or before is None else before.tls
    url = checked["url"] if "url" in checked or before is None else before.url
    if tls is not None:
        manager.transport.check_tls(tls, url=url, now=manager.clock.now())


def _asked(new: New) -> dict[str, object]:
    fields = ("url", "event_types", "policy", "headers", "order", "authentication", "tls")
    return {name: getattr(new, name) for name in fields}


def _new_secret(manager: Manager, endpoint: bytes, now: int) -> Secret:
    return Secret(
        id=new_id(manager, now),
        endpoint=endpoint,
        kind=signature.V1,
        material=manager.entropy.bits(limits.SECRET_BYTES_DEFAULT),
        created_at=now,
        expires_at=None,
    )


async def _end_some(manager: Manager, endpoint: bytes) -> int:
    return await manager.endings.end_endpoint(endpoint, limit=END_ROWS, now=manager.clock.now())


def _there(found: Endpoint | None) -> Endpoint:
    if found is None:
        raise missing()
    return found
