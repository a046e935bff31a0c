"""State of one endpoint in memory, for the hot path: everything that a call of it needs, and how it fares.

Endpoints with one URL share its breaker, which lives while one of them has it. The two know each other and stand together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from surehook.core.breaker import Breaker
from surehook.core.lanes import Limit, Pace
from surehook.core.model import Delivery, Endpoint, Lane, Secret
from surehook.core.policy import BreakerPolicy
from surehook.core.signature import Signer
from surehook.delivery.credential import Credential
from surehook.delivery.heads import static_heads
from surehook.delivery.plans import Plan
from surehook.ports.health import View
from surehook.ports.transport import Target, Transport

Place = tuple[str, str]  # tenant, and `scheme://host:port/path` of a URL

NEVER = 1 << 62
NOTHING: frozenset[str] = frozenset()
# Parked rows taken back at a time, at most, per slot the endpoint has now: the ramp after a pause.
PULL_SLOTS = 8


class EndpointState:
    """One endpoint as the engine sees it. It begins as a `QuietEndpointState`, which has no parts."""

    __slots__ = (
        "_transport",
        "asked",
        "blocked",
        "breaker",
        "breaker_policy",
        "credential",
        "endpoint",
        "failure_count",
        "finalize_ms",
        "flying",
        "free_since",
        "gone",
        "head",
        "held",
        "held_bytes",
        "is_quiet",
        "limits",
        "method",
        "own_plan",
        "pace",
        "parked",
        "private",
        "queues",
        "ringed",
        "secrets",
        "signer",
        "signer_until",
        "slots",
        "status",
        "suspect",
        "target",
    )  # fmt: skip

    # parts, all made when the first of them is asked for
    target: Target
    head: bytes
    private: bytes  # header lines for its own origin alone
    queues: tuple[deque[Delivery], deque[Delivery]]
    ringed: list[bool]  # stands in the lane's round
    flying: list[int]  # requests under way, by lane
    limits: tuple[Limit, Limit]  # apart, so that hanging first calls cannot keep retries out
    pace: Pace

    breaker: UrlBreaker  # of its URL: it joins as it is put into the directory

    def __init__(self, endpoint: Endpoint, transport: Transport, slots: int) -> None:
        self._transport = transport
        self.endpoint = endpoint
        self.breaker_policy: BreakerPolicy | None = None  # of its own; None: it heeds no breaker
        self.status = endpoint.status
        self.failure_count = endpoint.failure_count
        self.own_plan: Plan | None = None
        self.method = b""
        self.credential: Credential | None = None  # what it needs a token by
        self.finalize_ms: int | None = None  # how long after a delivery its receiver may be silent
        self.secrets: tuple[Secret, ...] = ()
        self.signer: Signer | None = None
        self.signer_until = 0
        self.is_quiet = True  # it has no queue, and nothing is known to be parked
        # Reasons for which the ledger may hold parked rows. Others tell what they know (`may_have_parked`, `has_taken_back`).
        self.parked: frozenset[str] = NOTHING
        self.held = 0  # deliveries in memory: queued, timed, in flight, or promised by an accept under way
        self.held_bytes = 0  # of their bodies
        self.slots = slots  # of both lanes together
        self.suspect = False  # its last word was a timeout
        self.blocked = False  # its last attempt was refused by the guard
        self.asked = 0  # counted up as its requests become others: an answer judges what it was asked of
        self.free_since: int | None = 0  # Unix ms: parked work may be sent again since then; None: it may not
        self.gone = False  # deleted

    def make_target(self) -> None:
        """Make the target of its requests."""
        endpoint = self.endpoint
        self.target = self._transport.stored(endpoint.url, tenant=endpoint.tenant, tls=endpoint.tls)

    def make_heads(self) -> None:
        """The header lines that are the same on every attempt."""
        self.head, self.private = static_heads(self.endpoint)

    def forget_pace(self) -> None:
        """It is called elsewhere from now on: how the place before answered says nothing about this one. A suspect
        remains one until it answers."""
        self.limits = (Limit(self.slots), Limit(self.slots))
        self.pace = Pace()
        self.blocked = False

    def may_have_parked(self, *reasons: str) -> None:
        """The ledger has rows of it that are parked for these reasons, or other processes may have parked some."""
        self.is_quiet = False
        if not self.parked.issuperset(reasons):
            self.parked = self.parked.union(reasons)

    def has_taken_back(self, reasons: Iterable[str]) -> None:
        """Nothing is left of what was parked for these reasons."""
        self.parked = self.parked.difference(reasons)

    @property
    def block_reason(self) -> str | None:
        """None where deliveries may be sent now, else the reason they are parked for."""
        if self.status != "active":
            return self.status
        if self.breaker.state != "closed":
            if self.breaker.reason == "key":
                return "key"
            # Another endpoint with this URL may heed a breaker; one whose policy has none is not held by it.
            if self.breaker_policy is not None:
                return "breaker"
        return None

    def has_slot(self, lane: Lane) -> bool:
        """Tell whether the endpoint may have one more request under way in the lane. While its token is being fetched it
        may not: what waits for a token waits in line, without a slot."""
        if self.credential is not None and self.credential.is_busy:
            return False
        flying = self.flying
        return flying[lane] < self.limits[lane].now and flying[0] + flying[1] < self.slots

    @property
    def pull(self) -> int:
        """Number of parked rows to take back at a time."""
        return min(self.slots, self.limits[0].now + self.limits[1].now) * PULL_SLOTS

    @property
    def is_low(self) -> bool:
        """Tell whether the endpoint will soon have nothing to send from memory: time to take back what is parked."""
        waiting = self.flying[0] + self.flying[1] + len(self.queues[0]) + len(self.queues[1])
        return waiting < self.pull // 2


class QuietEndpointState(EndpointState):
    """An endpoint that has had nothing to send. Most of a large installation have not, and a queue alone takes 760 bytes.

    The parts are made when the first of them is asked for, and the route is a `EndpointState` from then on. A class of its own,
    because `__getattr__` makes every attribute of its class cost five times as much, those that are there as well: that was
    a microsecond or two of each delivery.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> object:
        self._wake()
        return getattr(self, name)

    def _wake(self) -> None:
        self.is_quiet = False
        self.make_target()
        self.make_heads()
        self.queues = deque(), deque()
        self.ringed = [False, False]
        self.flying = [0, 0]
        self.limits = (Limit(self.slots), Limit(self.slots))
        self.pace = Pace()
        self.__class__ = EndpointState  # type: ignore[assignment]


def queued(route: EndpointState) -> list[Delivery]:
    """Deliveries that wait in the endpoint's queues. To ask must not make the parts of one that has none: whoever
    asks of many, at a shutdown or as a breaker opens, would build them all."""
    return [] if isinstance(route, QuietEndpointState) else [*route.queues[0], *route.queues[1]]


class UrlBreaker(Breaker):
    """The breaker of a tenant's URL, and who shares it."""

    __slots__ = ("routes",)

    routes: list[EndpointState]

    @property
    def place(self) -> Place:
        return (self.tenant, self.key)

    def hear_view(self, view: View) -> bool:
        """Another node said this; whether that calls for anything here (`Breaker.hear`)."""
        return self.hear(
            is_open=view.state == "open", reason=view.reason, opened_at=view.opened_at, probe_at=view.probe_at,
            generation=view.generation,
        )  # fmt: skip

    @property
    def is_unheeded(self) -> bool:
        """It is open, and no policy of its endpoints has a breaker. What the signing key opened holds all of them."""
        if self.is_closed or self.reason == "key" or not self.routes:
            return False
        return all(route.breaker_policy is None for route in self.routes)

    @property
    def oldest(self) -> EndpointState:
        """The endpoint that was made first: ids carry their time."""
        return min(self.routes, key=age)


def age(route: EndpointState) -> bytes:
    """Sort key of endpoints, the one that was made first in front."""
    return route.endpoint.id
