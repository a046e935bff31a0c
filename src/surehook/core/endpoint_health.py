"""The effect of one window of results on an endpoint, which every ledger applies inside its transaction."""

from __future__ import annotations

from hashlib import sha256

from surehook.core import ids
from surehook.core.model import EndpointHealth, EndpointStatus, Notice, RecordedEndpoint


def applies_to(health: EndpointHealth, url: str) -> bool:
    """Return True if the window was about the URL that the endpoint has now."""
    return health.url is None or health.url == url


def after_window(
    health: EndpointHealth, failure_count: int, status: EndpointStatus, reason: str | None
) -> RecordedEndpoint:
    """Return the endpoint's failure count and status after the window.

    A status that the window sets wins; otherwise an active endpoint that reaches its limit becomes inactive.
    """
    count = (0 if health.succeeded else failure_count) + health.failures
    if health.status is not None:
        status, reason = health.status, health.reason
    elif status == "active" and health.limit is not None and count >= health.limit:
        return RecordedEndpoint(health.endpoint, count, "inactive", "consecutive_failures", disabled=True)
    return RecordedEndpoint(health.endpoint, count, status, reason)


def disabled_notice(change: RecordedEndpoint, *, tenant: str, now: int) -> Notice:
    """Make the notice of an endpoint that reached its limit. Its id follows from its content, without randomness."""
    seed = sha256(b"endpoint.disabled" + change.endpoint + now.to_bytes(8, "big", signed=True)).digest()
    return Notice(
        id=ids.uuid7(now, seed),
        at=now,
        kind="endpoint.disabled",
        tenant=tenant,
        endpoint=change.endpoint,
        delivery=None,
        detail=change.why_disabled,
    )
