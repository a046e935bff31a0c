"""What the board shows of the engine's memory: breakers as people see them."""

from __future__ import annotations

from surehook.delivery.directory import Directory
from surehook.delivery.endpoint_state import UrlBreaker
from surehook.delivery.managing import BreakerView


def breaker_views(directory: Directory, now: int) -> list[BreakerView]:
    """Every breaker that is open, half-open, or closed with calls counted within its window."""
    views = []
    for breaker in directory.breakers:
        if not breaker.is_known:
            continue  # most of a large installation: the window of each would be looked through
        view = breaker_view(breaker, now)
        if breaker.is_closed and not view.calls:
            continue
        views.append(view)
    return views


def breaker_view(breaker: UrlBreaker, now: int) -> BreakerView:
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
