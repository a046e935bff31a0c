"""Values that travel between the packages. Times are Unix milliseconds, ids sixteen bytes.

`Event` and everything under "history" never change once written. `Delivery` is the one mutable value:
it is the worker's own copy of an unfinished row, and the row's `holder` and `attempt` are its fence.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from surehook.core.authentication import Authentication
from surehook.core.receipt import Wanted
from surehook.core.redact import HIDDEN

Lane = Literal[0, 1]
FIRST: Lane = 0
RETRY: Lane = 1
LANES = ("first", "retry")

State = Literal["scheduled", "sending", "retrying", "parked", "delivered", "dead", "dropped", "cancelled"]
END_STATES = ("delivered", "dead", "dropped", "cancelled")

Reason = Literal["breaker", "key", "paused", "inactive", "failure", "order", "share", "deleted", "request"]
PARKED_REASONS = ("breaker", "key", "paused", "inactive", "failure", "order", "share")
# While parked for these, the delivery's age stands still (docs/policies.md, `max_age`).
STANDING_REASONS = ("paused", "inactive", "failure")

OutcomeName = Literal[
    "delivered", "refused", "throttled", "gone", "rejected", "redirected",
    "timed_out", "broken", "unreachable", "garbled", "blocked",
]  # fmt: skip
AttemptKind = Literal["attempt", "interrupted", "ended"]
EndpointStatus = Literal["active", "paused", "inactive", "failure"]
Method = Literal["POST", "PUT", "PATCH"]


class Event(Struct, frozen=True, gc=False):
    """A published event, immutable. `body` is the exact request body of every attempt and replay."""

    id: bytes
    tenant: str
    type: str
    schema_version: str
    subject: str | None
    sequence: int | None
    workflow_version: str | None
    correlation_id: str | None
    causation_id: str | None
    source: str | None
    occurred_at: int | None
    accepted_at: int
    body: bytes
    digest: bytes  # SHA-256 of what the publisher sent
    fan_out: int  # deliveries made at acceptance, so that a repeat is answered the same for ever
    idempotency_key: str | None = None  # that its publisher gave, of its tenant


class Delivery(Struct, gc=False):
    """One event to one endpoint, unfinished, as the worker that holds it knows it."""

    id: bytes
    event: bytes
    endpoint: bytes
    tenant: str
    type: str
    lane: Lane
    attempt: int  # number of the attempt in hand, from 1
    due_at: int
    born_at: int  # when the schedule began: acceptance, replay, or re-activation
    body: bytes
    stood_ms: int = 0  # time that does not count as age (paused, inactive, failure)
    spared: int = 0  # attempts that spent no retry: `attempt - spared` is the place in the schedule, from 1
    freed: int = 0  # times running that a node died holding it
    overdue_at: int | None = None  # when to raise `delivery.overdue`, or None
    replay_of: bytes | None = None
    outcome: str | None = None  # of the last attempt
    unknown: bool = False  # the last request was sent and no answer was seen
    parked: str | None = None  # at birth only: born parked for this reason
    held: bool = False  # at birth only: born leased to the accepting node
    handed: int = 0  # at birth only: born marked as handed over to a broker (ports/handoff.py)


class Attempt(Struct, frozen=True, gc=False):
    """One line of a delivery's history; append only. Timings are whole microseconds, None where a phase did not happen."""

    delivery: bytes
    number: int
    kind: AttemptKind
    lane: Lane
    started_at: int
    outcome: str | None = None
    unknown: bool = False
    status: int | None = None
    error: str | None = None  # the exact cause, from the closed set of ports/transport.py
    address: str | None = None
    dns_us: int | None = None
    connect_us: int | None = None
    tls_us: int | None = None
    first_byte_us: int | None = None
    total_us: int | None = None
    headers: bytes = b""  # response header lines as received, capped
    body: bytes = b""  # response body as received, capped
    truncated: bool = False
    next_at: int | None = None


class Notice(Struct, frozen=True, gc=False):
    """Something an operator or a tenant should know; a durable row and a log line."""

    id: bytes
    at: int
    kind: str
    tenant: str
    endpoint: bytes | None
    delivery: bytes | None
    detail: str


class Settled(Struct, gc=False):
    """The result of one attempt (or one ending) for the ledger: a history line and the delivery's next state.

    `end` set: the delivery is finished with that state and leaves the hot table.
    Otherwise the row goes on with `lane`, `number`, `due_at`, unheld, parked where `parked` is set.
    """

    delivery: Delivery  # as it was in hand: id, holder and attempt are the fence
    entry: Attempt | None  # appended; None for steps that leave no trace (parking, handing back)
    end: str | None = None
    reason: str | None = None  # on an ended delivery: `deleted`, `request`
    lane: Lane = FIRST
    number: int = 1
    due_at: int = 0
    parked: str | None = None
    spared: int = 0  # as on the delivery from now on
    notices: tuple[Notice, ...] = ()
    finalize_by: int | None = None  # on a delivered one: when to raise `delivery.unfinalized`
    request_headers: bytes | None = None  # on a dead one: what its dead letter keeps of its last request


class EndpointHealth(Struct, frozen=True, gc=False):
    """The effect of one record window on an endpoint's consecutive-failure count.

    The ledger folds it in the same transaction: a success in the window resets the count, then the
    failures after it (or all of them) are added. Where `limit` is reached, the endpoint becomes `inactive`.
    `status` forces a status (`inactive` after 410, `failure` after enter_failure) with its reason. Nothing is folded
    where the endpoint has another URL by then than the `url` that was called.
    """

    endpoint: bytes
    succeeded: bool
    failures: int  # since the last success of the window, or all of the window
    limit: int | None
    status: EndpointStatus | None = None
    reason: str | None = None
    url: str | None = None  # None: whichever it has


class RecordedEndpoint(Struct, frozen=True, gc=False):
    """An endpoint as the record transaction left it, for memory to follow."""

    endpoint: bytes
    failure_count: int
    status: EndpointStatus
    reason: str | None
    # This transaction switched it off for its failures: reported once, however many fail after it.
    disabled: bool = False

    @property
    def why_disabled(self) -> str:
        """The sentence of its notice and of its log line."""
        return f"inactive after {self.failure_count} consecutive failures"


class BreakerRow(Struct, frozen=True):
    """A breaker's state, stored to survive a restart. `key` is scheme://host:port/path. Of two rows of one breaker that of
    the greater `generation` wins; of one generation, the closing (`core/breaker.py`)."""

    tenant: str
    key: str
    state: str
    reason: str
    opened_at: int
    probe_at: int
    failures: int
    calls: int
    generation: int


class Tenant(Struct, frozen=True):
    id: str
    name: str
    strict: bool  # refuse event types that are not registered
    created_at: int


class EventType(Struct, frozen=True):
    name: str
    description: str | None
    schema: bytes | None  # JSON Schema as given
    schema_version: str
    policy: bytes | None  # policy reference as given (JSON), or None
    created_at: int
    schemas: bytes | None = None  # of other versions, by version (JSON); None: versions are not told apart


class Secret(Struct, frozen=True):
    """One signing secret of an endpoint. `expires_at` is set when a rotation put it on its way out."""

    id: bytes
    endpoint: bytes
    kind: str  # `v1` HMAC-SHA256, `v1a` Ed25519
    material: bytes
    created_at: int
    expires_at: int | None


class EndpointTls(Struct, frozen=True, forbid_unknown_fields=True):
    """Own trust and own certificate of one endpoint, PEM texts. `client_certificate` and `client_key` come together."""

    ca: str | None = None  # authorities to trust for this endpoint, in place of the system's
    client_certificate: str | None = None
    client_key: str | None = None  # write-only

    def __repr__(self) -> str:
        key = None if self.client_key is None else HIDDEN
        return (
            f"EndpointTls(ca={self.ca!r}, client_certificate={self.client_certificate!r}, client_key={key})"
        )


class Endpoint(Struct, frozen=True):
    id: bytes
    tenant: str
    url: str
    event_types: tuple[str, ...]
    policy: bytes | None  # policy reference as given (JSON: a name or an object), None until set
    status: EndpointStatus
    reason: str | None
    failure_count: int
    order: str
    headers: dict[str, str]
    description: str | None
    created_at: int
    updated_at: int
    method: Method = "POST"
    authentication: Authentication | None = None
    tls: EndpointTls | None = None
    receipts: Wanted | None = None  # None: not asked for


class Configuration(Struct, frozen=True):
    """Rows of what the hot path keeps in memory. Endpoints come with all of their secrets."""

    tenants: tuple[Tenant, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    event_types: tuple[EventType, ...] = ()
    secrets: tuple[Secret, ...] = ()


class NodeRow(Struct, frozen=True):
    """One process start. Ids are never used again."""

    id: bytes
    host: str
    boot_id: str
    pid: int
    started_at: int
