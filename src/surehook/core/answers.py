"""The answers of the API, as the server writes them and the client reads them. Fields, their order and their names are the
contract (docs/api.md).

An absent value is null and never left out. Instants are RFC 3339 UTC with milliseconds, ids carry their prefix.
Fields of type `Any` hold JSON that was stored as bytes (`msgspec.Raw`) and leaves as it came.

Closed lists (`State`, `Reason`, …) are described as such and read as any text: an older client meets the words of a newer server.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

from msgspec import Meta, Struct

from surehook.core.json_value import JsonObject
from surehook.core.model import AttemptKind, EndpointStatus, Method, OutcomeName, Reason, State
from surehook.core.receipt import Stage

T = TypeVar("T")


def _one_of(words: Iterable[str]) -> Meta:
    return Meta(extra_json_schema={"enum": list(words)})


StateWord = Annotated[str, _one_of(get_args(State))]
ReasonWord = Annotated[str, _one_of(get_args(Reason))]
OutcomeWord = Annotated[str, _one_of(get_args(OutcomeName))]
AttemptWord = Annotated[str, _one_of(get_args(AttemptKind))]
StatusWord = Annotated[str, _one_of(get_args(EndpointStatus))]
MethodWord = Annotated[str, _one_of(get_args(Method))]
StageWord = Annotated[str, _one_of(get_args(Stage))]
LaneWord = Annotated[str, _one_of(("first", "retry"))]
BreakerWord = Annotated[str, _one_of(("closed", "open", "half_open"))]
ReplayWord = Annotated[str, _one_of(("running", "done", "failed"))]


class ListOut(Struct, Generic[T], frozen=True):
    data: list[T]
    next: str | None


class TenantOut(Struct, frozen=True):
    id: str
    name: str
    strict: bool
    created_at: str


class EventTypeOut(Struct, frozen=True):
    name: str
    description: str | None
    schema: Any
    schema_version: str
    policy: Any
    created_at: str
    schemas: Any


# What of an endpoint's authentication is shown: secrets are null, for ever.


class BasicShownOut(Struct, frozen=True, tag="basic", tag_field="type"):
    username: str
    password: None = None


class BearerShownOut(Struct, frozen=True, tag="bearer", tag_field="type"):
    token: None = None


class KeyHeaderShownOut(Struct, frozen=True, tag="api_key", tag_field="type"):
    header: str
    value: None = None


class ClientCredentialsShownOut(Struct, frozen=True, tag="oauth2", tag_field="type"):
    token_url: str
    client_id: str
    scopes: tuple[str, ...]
    audience: str | None
    style: Annotated[str, _one_of(("basic", "body"))]
    client_secret: None = None


AuthenticationShown = BasicShownOut | BearerShownOut | KeyHeaderShownOut | ClientCredentialsShownOut


class TlsShownOut(Struct, frozen=True):
    """`client_key` is there where `client_certificate` is, and never shown."""

    ca: str | None
    client_certificate: str | None
    client_key: None = None


class WantedOut(Struct, frozen=True):
    """Receipts as an endpoint wants them."""

    finalize_within_s: int | None


class SecretOut(Struct, frozen=True):
    """A secret that signs now, which is not shown. `signs_until` is null where no rotation has put it on its way out;
    `key_id` is what `webhook-key-id` calls it."""

    created_at: str
    signs_until: str | None
    key_id: str


class HeldOut(Struct, frozen=True):
    """The open breaker that holds an endpoint's deliveries back."""

    state: Annotated[str, _one_of(("open", "half_open"))]
    reason: str
    probe_at: str


class EndpointOut(Struct, frozen=True):
    id: str
    tenant: str
    url: str
    event_types: tuple[str, ...]
    policy: Any
    status: StatusWord
    reason: str | None
    failure_count: int
    order: str
    headers: dict[str, str]
    description: str | None
    created_at: str
    updated_at: str
    secret: str | None
    method: MethodWord
    authentication: AuthenticationShown | None
    tls: TlsShownOut | None
    receipts: WantedOut | None
    breaker: HeldOut | None
    key_id: str | None


class EventOut(Struct, frozen=True):
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


class ReceiptOut(Struct, frozen=True):
    """The receiver's later word on the event, by its own clock."""

    stage: StageWord
    accepted_at: str | None
    processed_at: str | None
    rejected_at: str | None
    finalized_at: str | None
    code: str | None
    note: str | None


class DismissalOut(Struct, frozen=True):
    note: str
    at: str


class DeliveryOut(Struct, frozen=True):
    id: str
    event: str
    endpoint: str
    tenant: str
    type: str
    state: StateWord
    reason: ReasonWord | None
    lane: LaneWord
    attempts: int
    outcome: OutcomeWord | None
    unknown: bool
    due_at: str | None
    finished_at: str | None
    replay_of: str | None
    replayed_by: str | None
    receipt: ReceiptOut | None
    dismissal: DismissalOut | None
    subject: str | None
    correlation_id: str | None
    request_headers: dict[str, str] | None


class TimingsOut(Struct, frozen=True):
    dns: float | None
    connect: float | None
    tls: float | None
    first_byte: float | None
    total: float | None


class ResponseOut(Struct, frozen=True):
    headers: dict[str, str]
    body: str | None
    truncated: bool


class AttemptOut(Struct, frozen=True):
    id: str
    delivery: str
    number: int
    kind: AttemptWord
    lane: LaneWord
    started_at: str
    outcome: OutcomeWord | None
    unknown: bool
    status: int | None
    error: str | None
    hint: str | None
    address: str | None
    timings_ms: TimingsOut
    response: ResponseOut
    next_at: str | None


class NoticeOut(Struct, frozen=True):
    id: str
    at: str
    kind: str
    tenant: str
    endpoint: str | None
    delivery: str | None
    detail: str


class ReplayOut(Struct, frozen=True):
    id: str
    filter: Any
    dry_run: bool
    state: ReplayWord
    matched: int
    created: int
    created_at: str
    finished_at: str | None


class BreakerOut(Struct, frozen=True):
    tenant: str
    url: str
    state: BreakerWord
    reason: str | None
    failures: int
    calls: int
    window_s: float | None
    opened_at: str | None
    probe_at: str | None
    parked: int


class LaneOut(Struct, frozen=True):
    name: LaneWord
    slots: int
    in_flight: int
    held: int
    ready: int
    oldest_due_s: float
    scheduled: int
    parked: int


class HealthOut(Struct, frozen=True):
    status: Literal["ok"]


class ReadyOut(Struct, frozen=True):
    status: Literal["ready"]
    warning: str | None


class AcceptedOut(Struct, frozen=True):
    id: str
    deliveries: int


class PreviewOut(Struct, frozen=True):
    policy: JsonObject
    timeline: list[JsonObject]
