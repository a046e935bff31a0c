"""Breakers as people see them, and what people do to one, who may know more of a receiver than its last answers say.

A probe is what would come anyway, sooner. A closing is a decision like that of a probe that went well: the ledger, the
other nodes and the notices have it, and where the receiver fails after all the breaker opens by its policy as before.
"""

from __future__ import annotations

from surehook.core.errors import Problem
from surehook.delivery.breakers import breaker_key
from surehook.delivery.directory import Directory
from surehook.delivery.endpoint_state import UrlBreaker
from surehook.delivery.managing import BreakerView, Manager


def breaker_views(directory: Directory, now: int) -> list[BreakerView]:
    """Every breaker that is open, half-open, or closed with calls counted within its window."""
    views = []
    for breaker in directory.breakers:
        if not breaker.is_known:
            continue  # most of a large installation: the window of each would be looked through
        view = _view(breaker, now)
        if breaker.is_closed and not view.calls:
            continue
        views.append(view)
    return views


async def probe(manager: Manager, tenant: str, url: str) -> BreakerView:
    """Its next probe is due now, on whichever node delivers retries. One that is closed has none, and stays as it is."""
    breaker = await _found(manager, tenant, url)
    manager.probe_now(breaker.oldest.endpoint.id)
    return _view(breaker, manager.clock.now())


async def close(manager: Manager, tenant: str, url: str) -> BreakerView:
    """It holds nothing back any more, whatever it opened for. One that is closed stays as it is."""
    breaker = await _found(manager, tenant, url)
    manager.close_breaker(breaker)
    return _view(breaker, manager.clock.now())


async def _found(manager: Manager, tenant: str, url: str) -> UrlBreaker:
    place = tenant, breaker_key(url)
    breaker = manager.directory.breakers.get(place)
    if breaker is None:
        await manager.current()
        breaker = manager.directory.breakers.get(place)
    if breaker is None or not breaker.routes:
        raise Problem(
            "not_found",
            "no endpoint of this tenant has this URL, and a breaker lives with its endpoints",
            hint="GET /v1/breakers names those that are open, by tenant and by URL without its query",
            status=404,
        )
    return breaker


def _view(breaker: UrlBreaker, now: int) -> BreakerView:
    """One of them."""
    calls, failures = breaker.counts(now)
    return BreakerView(
        tenant=breaker.tenant,
        url=breaker.key,
        state=breaker.state,
        reason=breaker.reason,
        failures=failures,
        calls=calls,
        window_s=None if breaker.policy is None else breaker.policy.window,
        opened_at=None if breaker.is_closed else breaker.opened_at,
        probe_at=None if breaker.is_closed else breaker.probe_at,
        endpoints=tuple(sorted(route.endpoint.id for route in breaker.routes)),
    )
