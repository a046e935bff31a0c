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
from surehook.api.operations import Operation

OPERATIONS: tuple[Operation, ...] = (
    *events.OPERATIONS,
    *deliveries.OPERATIONS,
    *dead_letters.OPERATIONS,
    *replays.OPERATIONS,
    *receipts.OPERATIONS,
    *endpoints.OPERATIONS,
    *tenants.OPERATIONS,
    *event_types.OPERATIONS,
    *policies.OPERATIONS,
    *lanes.OPERATIONS,
    *breakers.OPERATIONS,
    *notices.OPERATIONS,
    *health.OPERATIONS,
)
