"""Fields of requests and filters of lists, by the names of the API, which checks them; their meaning is in docs/api.md.

In a change, a field that is not given stays as it is, and None clears one that may be absent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from surehook.core.event_fields import EventFields
from surehook.core.json_value import JsonObject


class SendFields(EventFields, total=False):
    """Beside them, `id`: an event id of one's own (`evt_…`), under which a repeat is known."""

    id: str | None


class TenantFields(TypedDict, total=False):
    """Fields of a tenant. `strict`: only registered event types are accepted."""

    strict: bool


class TenantChanges(TenantFields, total=False):
    """Fields of a tenant that can be changed."""

    name: str


class EventTypeFields(TypedDict, total=False):
    """Fields of an event type. `schema`: JSON Schema of its data; `schemas`: those of other versions."""

    description: str | None
    schema: JsonObject | None
    schema_version: str
    schemas: Mapping[str, JsonObject] | None
    policy: str | JsonObject | None


class EndpointFields(TypedDict, total=False):
    """Fields of an endpoint beside its tenant, its URL and its event types."""

    policy: str | JsonObject | None
    headers: Mapping[str, str]
    order: str
    description: str | None
    method: str
    authentication: JsonObject | None
    tls: JsonObject | None
    receipts: JsonObject | None


class EndpointChanges(EndpointFields, total=False):
    """Fields of an endpoint that can be changed. `status`: `active` or `paused`."""

    url: str
    event_types: Sequence[str]
    status: str


class EndpointFilters(TypedDict, total=False):
    """Which endpoints."""

    tenant: str | None
    status: str | None


class EventFilters(TypedDict, total=False):
    """Which events. `since` (or later) and `until` (before) are RFC 3339."""

    tenant: str | None
    type: str | None
    subject: str | None
    correlation_id: str | None
    idempotency_key: str | None
    since: str | None
    until: str | None


class _DeliveryFilters(TypedDict, total=False):
    """`status` and `error` are those of the last request, `receipt` and `code` the receiver's word; `since` (or later) and
    `until` (before) are RFC 3339, about when the event was accepted."""

    endpoint: str | None
    type: str | None
    outcome: str | None
    status: int | None
    error: str | None
    receipt: str | None
    code: str | None
    subject: str | None
    correlation_id: str | None
    since: str | None
    until: str | None


class DeadLetterFilters(_DeliveryFilters, total=False):
    """Which dead letters."""

    tenant: str | None


class EventDeliveryFilters(_DeliveryFilters, total=False):
    """Which deliveries of one event."""

    state: str | None


class DeliveryFilters(DeadLetterFilters, EventDeliveryFilters, total=False):
    """Which deliveries, or which to deliver again."""


class NoticeFilters(TypedDict, total=False):
    """Which notices; `since` is RFC 3339."""

    tenant: str | None
    endpoint: str | None
    kind: str | None
    since: str | None
