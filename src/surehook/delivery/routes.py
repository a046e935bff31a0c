"""What the hot path knows of every endpoint, in memory: no look-up per event, none per delivery.

A `Route` is an endpoint with what it needs to be called (target, prepared header lines, signer, plans) and
how it fares (queues, slots, pace, breaker). `Directory` builds both from rows of the
configuration, one by one as they change, and keeps running state across changes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakValueDictionary

from surehook.core.authentication import ClientCredentials
from surehook.core.envelope import EventIn
from surehook.core.errors import Problem
from surehook.core.json_text import quoted
from surehook.core.lanes import Limit, Pace
from surehook.core.model import Delivery, Endpoint, EventType, Lane, Secret, Tenant
from surehook.core.policy import BreakerPolicy, HeaderNames
from surehook.core.profiles import PROFILES
from surehook.core.schema import Schema
from surehook.core.schema_versions import Versions
from surehook.core.signature import Signer
from surehook.core.subscription import Matcher
from surehook.delivery.asked import finalize_ms, request_of
from surehook.delivery.breakers import Breakers, UrlBreaker, breaker_key
from surehook.delivery.freshness import Changed
from surehook.delivery.plans import Plan, stored_policy
from surehook.delivery.tokens import Grant
from surehook.ports.transport import Target

NEVER = 1 << 62
NOTHING: frozenset[str] = frozenset()
METHODS: dict[str, bytes] = {"POST": b"POST", "PUT": b"PUT", "PATCH": b"PATCH"}
# Parked rows taken back at a time, at most, per slot the endpoint has now: the ramp after a pause.
PULL_SLOTS = 8


class Route:
    """One endpoint as the engine sees it. It begins as a `QuietRoute`, which has no parts."""

    __slots__ = (
        "_directory", "asked", "blocked", "breaker", "breaker_policy", "endpoint", "failure_count",
        "finalize_ms", "flying", "free_since", "gone", "grant", "head", "held", "held_bytes", "is_quiet",
        "limits", "method", "own_plan", "pace", "parked", "private", "queues", "ringed", "secrets", "signer",
        "signer_until", "slots", "status", "suspect", "target",
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

    def __init__(self, endpoint: Endpoint, directory: Directory, slots: int) -> None:
        self._directory = directory
        self.endpoint = endpoint
        self.breaker_policy: BreakerPolicy | None = None  # of its own; None: it heeds no breaker
        self.status = endpoint.status
        self.failure_count = endpoint.failure_count
        self.own_plan: Plan | None = None
        self.method = b""
        self.grant: Grant | None = None  # what it needs a token by
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
    def takes(self) -> str | None:
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
        """Whether the endpoint may have one more request under way in the lane. While its token is being fetched it
        may not: what waits for a token waits in line, without a slot."""
        if self.grant is not None and self.grant.is_busy:
            return False
        flying = self.flying
        return flying[lane] < self.limits[lane].now and flying[0] + flying[1] < self.slots

    @property
    def pull(self) -> int:
        """How many parked rows to take back at a time."""
        return min(self.slots, self.limits[0].now + self.limits[1].now) * PULL_SLOTS

    @property
    def is_low(self) -> bool:
        """Whether the endpoint will soon have nothing to send from memory: time to take back what is parked."""
        waiting = self.flying[0] + self.flying[1] + len(self.queues[0]) + len(self.queues[1])
        return waiting < self.pull // 2


class QuietRoute(Route):
    """An endpoint that has had nothing to send. Most of a large installation have not, and a queue alone takes 760 bytes.

    The parts are made when the first of them is asked for, and the route is a `Route` from then on. A class of its own,
    because `__getattr__` makes every attribute of its class cost five times as much, those that are there as well: that was
    a microsecond or two of each delivery.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        self._wake()
        return getattr(self, name)

    def _wake(self) -> None:
        self.is_quiet = False
        self.target = self._directory.make_target(self.endpoint)
        self.head, self.private = self._directory.make_heads(self.endpoint)
        self.queues = deque(), deque()
        self.ringed = [False, False]
        self.flying = [0, 0]
        self.limits = (Limit(self.slots), Limit(self.slots))
        self.pace = Pace()
        self.__class__ = Route  # type: ignore[assignment]


def queued(route: Route) -> list[Delivery]:
    """What waits in the endpoint's queues. To ask must not make the parts of one that has none: whoever asks of many, at a
    shutdown or as a breaker opens, would build them all."""
    return [] if isinstance(route, QuietRoute) else [*route.queues[0], *route.queues[1]]


class Directory:
    """The configuration in memory. `version` is what accepting transactions are checked against."""

    def __init__(
        self,
        *,
        make_target: Callable[[Endpoint], Target],
        make_heads: Callable[[Endpoint], tuple[bytes, bytes]],
        slots: int,
    ) -> None:
        self.make_target: Callable[[Endpoint], Target] = make_target
        self.make_heads: Callable[[Endpoint], tuple[bytes, bytes]] = make_heads
        self._slots = slots
        self.version = -1
        self.changed = Changed()
        self.tenants: dict[str, Tenant] = {}
        self.types: dict[str, EventType] = {}
        self.schemas: dict[str, Versions] = {}  # of the event types that have any
        # By its bytes, while a type has it or a call registers it: a description that changes must not cost what a schema costs.
        self.compiled: WeakValueDictionary[bytes, Schema] = WeakValueDictionary()
        self.routes: dict[bytes, Route] = {}
        self.breakers = Breakers()
        self._of_tenant: dict[str, dict[bytes, Route]] = {}
        self._matchers: dict[str, Matcher[Route]] = {}  # by tenant, made when first asked after a change
        # A grant lives while an endpoint has it or a fetch is under way: nothing is fetched twice at once.
        self._grants: WeakValueDictionary[tuple[str, ClientCredentials], Grant] = WeakValueDictionary()
        self._plans: WeakValueDictionary[bytes, Plan] = WeakValueDictionary()  # by the policy as it was given
        self._type_plans: dict[str, Plan] = {}
        self._without_breaker: set[str] = set()  # event types whose policy has none
        self._standard = Plan(PROFILES["standard"])

    # -- what the loader does (delivery/loading.py): `version` is that of the change ----------------------

    def put_tenant(self, tenant: Tenant, version: int) -> None:
        self.tenants[tenant.id] = tenant
        self.changed.tenant(tenant.id, version)

    def drop_tenant(self, tenant: str, version: int) -> None:
        self.tenants.pop(tenant, None)
        self.changed.tenant(tenant, version)

    def put_type(self, event_type: EventType, schemas: Versions | None, version: int) -> bool:
        """Whether its policy got or lost its breaker: its endpoints `heed` another one then."""
        was_without = event_type.name in self._without_breaker
        name = event_type.name
        self.drop_type(name, version)
        self.types[name] = event_type
        if schemas is not None:
            self.schemas[name] = schemas
        if event_type.policy is not None:
            plan = self._type_plans[name] = self._plan_of(event_type.policy)
            if plan.policy.breaker is None:
                self._without_breaker.add(name)
        return was_without is not (name in self._without_breaker)

    def drop_type(self, name: str, version: int) -> bool:
        """As `put_type`."""
        was_without = name in self._without_breaker
        self._without_breaker.discard(name)
        kinds: tuple[dict[str, Any], ...] = (self.types, self.schemas, self._type_plans)
        for kept in kinds:
            kept.pop(name, None)
        self.changed.event_type(name, version)
        return was_without

    def put_endpoint(self, endpoint: Endpoint, secrets: tuple[Secret, ...], version: int) -> Route:
        """The endpoint's route, made or changed. What runs goes on."""
        before = self.routes.get(endpoint.id)
        filters = None if before is None else before.endpoint.event_types
        route = self._route(endpoint, secrets)
        self._share_grant(route)
        self.routes[endpoint.id] = route
        if filters != endpoint.event_types:
            self._of_tenant.setdefault(endpoint.tenant, {})[endpoint.id] = route
            self._matchers.pop(endpoint.tenant, None)
        self.changed.tenant(endpoint.tenant, version)
        return route

    def drop_endpoint(self, id: bytes, version: int) -> Route | None:
        """The route whose endpoint is gone; None where there was none."""
        route = self.routes.pop(id, None)
        if route is None:
            return None
        route.gone = True
        self.breakers.leave(route)
        tenant = route.endpoint.tenant
        if route.grant is not None:
            route.grant.routes.remove(route)
        mine = self._of_tenant[tenant]
        del mine[id]
        if not mine:
            del self._of_tenant[tenant]
        self._matchers.pop(tenant, None)
        self.changed.tenant(tenant, version)
        return route

    # -- what the hot path asks -------------------------------------------------------------------------

    def fan_out(self, tenant: str, event_type: str) -> tuple[Route, ...]:
        """The routes that want an event, in the order of their endpoints' ids."""
        matcher = self._matchers.get(tenant)
        if matcher is None:
            mine = self._of_tenant.get(tenant)
            if mine is None:
                return ()
            entries = ((route, route.endpoint.event_types) for _, route in sorted(mine.items()))
            matcher = self._matchers[tenant] = Matcher(entries)
        return matcher.match(event_type)

    def endpoints_of(self, tenant: str) -> int:
        """How many endpoints a tenant has."""
        return len(self._of_tenant.get(tenant, ()))

    def refuses(self, event: EventIn) -> Problem | None:
        """What the configuration in memory has against an event: its tenant, its type, its version's schema."""
        tenant = self.tenants.get(event.tenant)
        if tenant is None:
            return Problem(
                "unknown_tenant",
                f"there is no tenant {quoted(event.tenant)}",
                field="tenant",
                hint="POST /v1/tenants",
            )
        if tenant.strict and event.type not in self.types:
            return Problem(
                "unknown_event_type", f"{quoted(event.type)} is not registered and this tenant is strict",
                field="type", hint="POST /v1/event-types",
            )  # fmt: skip
        schemas = self.schemas.get(event.type)
        return None if schemas is None else schemas.refuses(event)

    def weight(self, event: EventIn) -> int:
        """How many steps judging the event takes at most, by a glance at it (core/schema_cost.py)."""
        schemas = self.schemas.get(event.type)
        return 0 if schemas is None else schemas.weight(event)

    def plan(self, route: Route, event_type: str) -> Plan:
        """The policy of one delivery: the endpoint's own, else the event type's, else `standard`."""
        if route.own_plan is not None:
            return route.own_plan
        return self._type_plans.get(event_type, self._standard)

    def header_names(self) -> list[tuple[str, HeaderNames]]:
        """The event types whose policy puts something under a header of its choice, and which."""
        named = ((name, plan.policy.headers) for name, plan in self._type_plans.items())
        return [(name, headers) for name, headers in named if headers != HeaderNames()]

    def youngest_age(self, route: Route | None) -> float | None:
        """The smallest `max_age` (seconds) of the policies that may hold for the endpoint's deliveries; None: for those of
        any endpoint without a policy of its own."""
        own = None if route is None else route.own_plan
        plans = [own] if own is not None else [self._standard, *self._type_plans.values()]
        return min((plan.policy.max_age for plan in plans if plan.policy.max_age is not None), default=None)

    def heed(self, route: Route) -> None:
        """The policies of event types that the endpoint takes have changed."""
        route.breaker_policy = self._breaker_policy(route)
        self.breakers.unsettle(route.breaker)

    def _breaker_policy(self, route: Route) -> BreakerPolicy | None:
        """The breaker of the endpoint's own policy. Without one it is that of `standard`, or none where each event type that
        the endpoint names has a policy without."""
        if route.own_plan is not None:
            return route.own_plan.policy.breaker
        if self._without_breaker.issuperset(route.endpoint.event_types):
            return None
        return self._standard.policy.breaker

    def _share_grant(self, route: Route) -> None:
        """Give the endpoint what it gets tokens by: one for all of the tenant's endpoints with the same credential."""
        client, former = route.endpoint.authentication, route.grant
        if former is not None:
            if former.client == client:
                return
            former.routes.remove(route)
            route.grant = None
        if isinstance(client, ClientCredentials):
            key = (route.endpoint.tenant, client)
            grant = self._grants.get(key)
            if grant is None:
                grant = self._grants[key] = Grant(*key)
            grant.routes.append(route)
            route.grant = grant

    def _route(self, endpoint: Endpoint, secrets: tuple[Secret, ...]) -> Route:
        own = None if endpoint.policy is None else self._plan_of(endpoint.policy)
        route = self.routes.get(endpoint.id)
        joins = True
        if route is None:
            route = QuietRoute(endpoint, self, self._slots)
        else:
            _ask_anew(route, endpoint, secrets, self)
            joins = breaker_key(route.endpoint.url) != breaker_key(endpoint.url)
            if joins:
                self.breakers.leave(route)
        route.endpoint = endpoint
        route.own_plan = own
        route.breaker_policy = self._breaker_policy(route)
        if joins:
            route.breaker = self.breakers.join(route)
        else:
            self.breakers.unsettle(route.breaker)
        if route.status != "active" and endpoint.status == "active":
            route.may_have_parked(route.status)
        route.status = endpoint.status
        route.failure_count = endpoint.failure_count
        route.method = METHODS[endpoint.method]
        route.finalize_ms = finalize_ms(endpoint)
        route.secrets = secrets
        route.signer, route.signer_until = None, 0
        return route

    def _plan_of(self, reference: bytes) -> Plan:
        """One for all who give the same policy: spelled out it takes 6 KB."""
        plan = self._plans.get(reference)
        if plan is None:
            plan = self._plans[reference] = Plan(stored_policy(reference))
        return plan


def _ask_anew(route: Route, endpoint: Endpoint, secrets: tuple[Secret, ...], directory: Directory) -> None:
    """Make anew what the endpoint's requests are made from, as far as it is other now."""
    if request_of(route.endpoint, route.secrets) != request_of(endpoint, secrets):
        route.asked += 1
    if isinstance(route, QuietRoute):
        return
    route.head, route.private = directory.make_heads(endpoint)
    if (route.endpoint.url, route.endpoint.tls) != (endpoint.url, endpoint.tls):
        route.target = directory.make_target(endpoint)
        route.forget_pace()
