"""The shapes of answers. Fields, their order and their names are the contract (docs/api.md).

An absent value is null and never left out. Instants are RFC 3339 UTC with milliseconds, ids carry their prefix.
Fields of type `Any` hold JSON that was stored as bytes (`msgspec.Raw`) and leaves as it came.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

from surehook.api.json_object import JsonObject
from surehook.core.model import AttemptKind, EndpointStatus, Method, OutcomeName, Reason, State
from surehook.core.receipt import Stage, Wanted

T = TypeVar("T")
LaneName = Literal["first", "retry"]


class ListShape(Struct, Generic[T], frozen=True):
    data: list[T]
    next: str | None


class TenantShape(Struct, frozen=True):
    id: str
    name: str
    strict: bool
    created_at: str


class EventTypeShape(Struct, frozen=True):
    name: str
    description: str | None
    schema: Any
    schema_version: str
    policy: Any
    created_at: str
    schemas: Any


# What of an endpoint's authentication is shown: secrets are null, for ever.


class BasicShownShape(Struct, frozen=True, tag="basic", tag_field="type"):
    username: str
    password: None = None


class BearerShownShape(Struct, frozen=True, tag="bearer", tag_field="type"):
    token: None = None


class KeyHeaderShownShape(Struct, frozen=True, tag="api_key", tag_field="type"):
    header: str
    value: None = None


class ClientCredentialsShownShape(Struct, frozen=True, tag="oauth2", tag_field="type"):
    token_url: str
    client_id: str
    scopes: tuple[str, ...]
    audience: str | None
    style: Literal["basic", "body"]
    client_secret: None = None


AuthenticationShown = BasicShownShape | BearerShownShape | KeyHeaderShownShape | ClientCredentialsShownShape


class TlsShownShape(Struct, frozen=True):
    """`client_key` is there where `client_certificate` is, and never shown."""

    ca: str | None
    client_certificate: str | None
    client_key: None = None


class SecretShape(Struct, frozen=True):
    """A secret that signs now, which is not shown. `signs_until` is null where no rotation has put it on its way out;
    `key_id` is what `webhook-key-id` calls it."""

    created_at: str
    signs_until: str | None
    key_id: str


class HeldShape(Struct, frozen=True):
    """The open breaker that holds an endpoint's deliveries back."""

    state: Literal["open", "half_open"]
    reason: str
    probe_at: str


class EndpointShape(Struct, frozen=True):
    id: str
    tenant: str
    url: str
    event_types: tuple[str, ...]
    policy: Any
    status: EndpointStatus
    reason: str | None
    failure_count: int
    order: str
    headers: dict[str, str]
    description: str | None
    created_at: str
    updated_at: str
    secret: str | None
    method: Method
    authentication: AuthenticationShown | None
    tls: TlsShownShape | None
    receipts: Wanted | None
    breaker: HeldShape | None
    key_id: str | None


class EventShape(Struct, frozen=True):
    id: str
    tenant: str
    type: str
    subject: str | None
    sequence: int | None
    schema_version: str
    workflow_version: str | None
    correlation_id: str | None
    causation_id: str | None
    source: str | None
    occurred_at: str | None
    accepted_at: str
    deliveries: int
    idempotency_key: str | None
    data: Any


class ReceiptShape(Struct, frozen=True):
    """What the receiver said of the event later, by its own clock."""

    stage: Stage
    accepted_at: str | None
    processed_at: str | None
    rejected_at: str | None
    finalized_at: str | None
    code: str | None
    note: str | None


class DismissalShape(Struct, frozen=True):
    note: str
    at: str


class DeliveryShape(Struct, frozen=True):
    id: str
    event: str
    endpoint: str
    tenant: str
    type: str
    state: State
    reason: Reason | None
    lane: LaneName
    attempts: int
    outcome: OutcomeName | None
    unknown: bool
    due_at: str | None
    finished_at: str | None
    replay_of: str | None
    replayed_by: str | None
    receipt: ReceiptShape | None
    dismissal: DismissalShape | None
    subject: str | None
    correlation_id: str | None
    request_headers: dict[str, str] | None


class TimingsShape(Struct, frozen=True):
    dns: float | None
    connect: float | None
    tls: float | None
    first_byte: float | None
    total: float | None


class ResponseShape(Struct, frozen=True):
    headers: dict[str, str]
    body: str | None
    truncated: bool


class AttemptShape(Struct, frozen=True):
    id: str
    delivery: str
    number: int
    kind: AttemptKind
    lane: LaneName
    started_at: str
    outcome: OutcomeName | None
    unknown: bool
    status: int | None
    error: str | None
    hint: str | None
    address: str | None
    timings_ms: TimingsShape
    response: ResponseShape
    next_at: str | None


class NoticeShape(Struct, frozen=True):
    id: str
    at: str
    kind: str
    tenant: str
    endpoint: str | None
    delivery: str | None
    detail: str


class ReplayShape(Struct, frozen=True):
    id: str
    filter: Any
    dry_run: bool
    state: Literal["running", "done", "failed"]
    matched: int
    created: int
    created_at: str
    finished_at: str | None


class BreakerShape(Struct, frozen=True):
    tenant: str
    url: str
    state: Literal["closed", "open", "half_open"]
    reason: str | None
    failures: int
    calls: int
    window_s: float | None
    opened_at: str | None
    probe_at: str | None
    parked: int


class LaneShape(Struct, frozen=True):
    name: LaneName
    slots: int
    in_flight: int
    held: int
    ready: int
    oldest_due_s: float
    scheduled: int
    parked: int


class HealthShape(Struct, frozen=True):
    status: Literal["ok"]


class ReadyShape(Struct, frozen=True):
    status: Literal["ready"]
    warning: str | None


class AcceptedShape(Struct, frozen=True):
    id: str
    deliveries: int


class PreviewShape(Struct, frozen=True):
    policy: JsonObject
    timeline: list[JsonObject]
