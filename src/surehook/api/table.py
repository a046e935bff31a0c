"""Every call there is, in the order of the document."""

from __future__ import annotations

from surehook.api import (
    breakers,
    dead_letters,
    deliveries,
    endpoints,
    event_types,
    events,
    health,
    lanes,
    notices,
    policies,
    receipts,
    replays,
    tenants,
)
from surehook.api.calls import Operation

CALLS: tuple[Operation, ...] = (
    *events.CALLS,
    *deliveries.CALLS,
    *dead_letters.CALLS,
    *replays.CALLS,
    *receipts.CALLS,
    *endpoints.CALLS,
    *tenants.CALLS,
    *event_types.CALLS,
    *policies.CALLS,
    *lanes.CALLS,
    *breakers.CALLS,
    *notices.CALLS,
    *health.CALLS,
)
