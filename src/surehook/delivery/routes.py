"""What the hot path knows of every endpoint, in memory: no look-up per event, none per delivery.

A `Route` is an endpoint with what it needs to be called (target, prepared header lines, signer, plans) and
how it fares (queues, slots, pace, breaker). A `Plan` is a policy spelled out for one event type, since an
endpoint without a policy of its own follows the event type's. `Directory` builds both from one snapshot of
the configuration and keeps running state across reloads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Literal

from surehook.core import ids
from surehook.core.authentication import ClientCredentials
from surehook.core.breaker import Breaker
from surehook.core.envelope import EventIn
from surehook.core.errors import Problem
from surehook.core.json_text import quoted
from surehook.core.lanes import Limit, Pace
from surehook.core.model import Configuration, Delivery, Endpoint, EventType, Lane, Secret, Tenant
from surehook.core.outcome import succeeds
from surehook.core.policy import BreakerPolicy, Policy, parse_policy
from surehook.core.profiles import PROFILES
from surehook.core.schema import Schema, kept_schema
from surehook.core.signature import Signer
from surehook.core.subscription import Matcher
from surehook.delivery.tokens import Grant
from surehook.ports.transport import Target

NEVER = 1 << 62
PULL_SLOTS = (
    8  # parked rows taken back at a time, at most, per slot the endpoint has now: the ramp after a pause
)


class Plan:
    """A policy with what the hot path asks of it looked up in advance."""

    __slots__ = ("delivery_header", "policy", "redirect_style", "retry_header", "success")

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.success = succeeds(policy)
        self.redirect_style: Literal["strict", "yousign"] = (
            "yousign" if policy.profile == "yousign" else "strict"
        )
        self.retry_header = policy.headers.retry_count.encode() if policy.headers.retry_count else None
        self.delivery_header = policy.headers.delivery_id.encode() if policy.headers.delivery_id else None


class Route:
    """One endpoint as the engine sees it."""

    __slots__ = (
        "blocked",
        "breaker",
        "endpoint",
        "failure_count",
        "finalize_ms",
        "flying",
        "gone",
        "grant",
        "head",
        "held",
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
        "text_id",
    )  # fmt: skip

    def __init__(self, endpoint: Endpoint, target: Target, breaker: Breaker, slots: int) -> None:
        self.endpoint = endpoint
        self.text_id = ids.text(ids.ENDPOINT, endpoint.id)
        self.target = target
        self.breaker = breaker
        self.status = endpoint.status
        self.failure_count = endpoint.failure_count
        self.own_plan: Plan | None = None
        self.head = b""
        self.private = b""  # header lines for its own origin alone
        self.method = endpoint.method.encode()
        self.grant: Grant | None = None  # what it needs a token by
        self.finalize_ms: int | None = None  # how long after a delivery its receiver may be silent
        self.secrets: tuple[Secret, ...] = ()
        self.signer: Signer | None = None
        self.signer_until = 0
        self.queues: tuple[deque[Delivery], deque[Delivery]] = (deque(), deque())
        self.ringed = [False, False]  # stands in the lane's round
        self.flying = [0, 0]  # requests under way, by lane
        self.held = 0  # deliveries in memory: queued, timed, in flight, or promised by an accept under way
        self.slots = slots  # of both lanes together
        self.limits = (
            Limit(slots),
            Limit(slots),
        )  # apart, so that hanging first calls cannot keep retries out
        self.pace = Pace()
        self.parked: set[str] = set()  # reasons for which the ledger may hold parked rows
        self.suspect = False  # its last word was a timeout
        self.blocked = False  # its last attempt was refused by the guard
        self.gone = False  # deleted

    @property
    def takes(self) -> str | None:
        """None where deliveries may be sent now, else the reason they are parked for."""
        if self.status != "active":
            return self.status
        if self.breaker.state != "closed":
            return "key" if self.breaker.reason == "key" else "breaker"
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


class Directory:
    """The configuration in memory. `version` is what accepting transactions are checked against."""

    def __init__(
        self,
        *,
        make_target: Callable[[Endpoint], Target],
        make_heads: Callable[[Endpoint], tuple[bytes, bytes]],
        slots: int,
    ) -> None:
        self._make_target = make_target
        self._make_heads = make_heads
        self._slots = slots
        self.version = -1
        self.tenants: Mapping[str, Tenant] = {}
        self.types: dict[str, EventType] = {}
        self.schemas: dict[str, Schema] = {}  # of the event types that have one
        self.routes: dict[bytes, Route] = {}
        self.breakers: dict[tuple[str, str], Breaker] = {}
        self.touched: list[Breaker] = []  # those with something to report, where nodes decide together
        self.together = False  # set before the first load
        self._matchers: dict[str, Matcher[Route]] = {}  # by tenant
        self._grants: dict[tuple[str, ClientCredentials], Grant] = {}  # by tenant
        self._type_plans: dict[str, Plan] = {}
        self._standard = Plan(PROFILES["standard"])

    def load(self, configuration: Configuration) -> list[Route]:
        """Take a newer snapshot over; returns the routes whose endpoint is gone."""
        self.version = configuration.version
        self.tenants = {tenant.id: tenant for tenant in configuration.tenants}
        self.types = {event_type.name: event_type for event_type in configuration.event_types}
        self.schemas = {
            name: self._schema(name, event_type.schema)
            for name, event_type in self.types.items()
            if event_type.schema is not None
        }
        self._type_plans = {
            name: Plan(stored_policy(event_type.policy))
            for name, event_type in self.types.items()
            if event_type.policy is not None
        }
        secrets: dict[bytes, list[Secret]] = {}
        for secret in configuration.secrets:
            secrets.setdefault(secret.endpoint, []).append(secret)
        fresh: dict[bytes, Route] = {}
        # One whose fetch is under way is kept, so that credentials which come back soon are not fetched twice at once.
        grants = self._grants
        self._grants = {key: grant for key, grant in grants.items() if grant.is_busy}
        for grant in grants.values():
            grant.routes.clear()
        for endpoint in configuration.endpoints:
            route = self._route(endpoint, tuple(secrets.get(endpoint.id, ())))
            route.grant = self._grant(route, grants)
            fresh[endpoint.id] = route
        gone = [route for key, route in self.routes.items() if key not in fresh]
        for route in gone:
            route.gone = True
        self.routes = fresh
        by_tenant: dict[str, list[Route]] = {}
        for route in fresh.values():
            by_tenant.setdefault(route.endpoint.tenant, []).append(route)
        self._matchers = {
            tenant: Matcher((route, route.endpoint.event_types) for route in routes)
            for tenant, routes in by_tenant.items()
        }
        return gone

    def fan_out(self, tenant: str, event_type: str) -> tuple[Route, ...]:
        """The routes that want an event."""
        matcher = self._matchers.get(tenant)
        return () if matcher is None else matcher.match(event_type)

    def refuses(self, event: EventIn) -> Problem | None:
        """What the configuration in memory has against an event: its tenant, its type, its type's schema."""
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
        schema = self.schemas.get(event.type)
        return None if schema is None else schema.mismatch(event.data)

    def plan(self, route: Route, event_type: str) -> Plan:
        """The policy of one delivery: the endpoint's own, else the event type's, else `standard`."""
        if route.own_plan is not None:
            return route.own_plan
        return self._type_plans.get(event_type, self._standard)

    def youngest_age(self, route: Route) -> float | None:
        """The smallest `max_age` (seconds) of the policies that may hold for the endpoint's deliveries."""
        plans = (
            [route.own_plan] if route.own_plan is not None else [self._standard, *self._type_plans.values()]
        )
        return min((plan.policy.max_age for plan in plans if plan.policy.max_age is not None), default=None)

    def breaker(self, tenant: str, key: str, policy: BreakerPolicy | None) -> Breaker:
        """The one breaker of a tenant's URL (without query), shared by all endpoints with that URL."""
        breaker = self.breakers.get((tenant, key))
        if breaker is None:
            breaker = self.breakers[tenant, key] = Breaker(
                tenant, key, policy, self.touched if self.together else None
            )
        elif policy is not None:
            breaker.policy = policy
        return breaker

    def _grant(self, route: Route, before: Mapping[tuple[str, ClientCredentials], Grant]) -> Grant | None:
        """What the endpoint gets tokens by, shared with the tenant's other endpoints that have the same credential."""
        client = route.endpoint.authentication
        if not isinstance(client, ClientCredentials):
            return None
        key = (route.endpoint.tenant, client)
        grant = self._grants.get(key)
        if grant is None:
            grant = self._grants[key] = before.get(key) or Grant(*key)
        grant.routes.append(route)
        return grant

    def _schema(self, name: str, source: bytes) -> Schema:
        """Compiled anew only where the bytes are others: a reload must not cost what all schemas cost."""
        known = self.schemas.get(name)
        return known if known is not None and known.source == source else kept_schema(source)

    def _route(self, endpoint: Endpoint, secrets: tuple[Secret, ...]) -> Route:
        own = None if endpoint.policy is None else stored_policy(endpoint.policy)
        breaker_policy = (own or self._standard.policy).breaker
        breaker = self.breaker(endpoint.tenant, breaker_key(endpoint.url), breaker_policy)
        route = self.routes.get(endpoint.id)
        if route is None:
            route = Route(endpoint, self._make_target(endpoint), breaker, self._slots)
        elif (route.endpoint.url, route.endpoint.tls) != (endpoint.url, endpoint.tls):
            route.target = self._make_target(endpoint)
        route.endpoint = endpoint
        route.breaker = breaker
        if route.status != "active" and endpoint.status == "active":
            route.parked.add(route.status)  # perhaps by processes that we know nothing of
        route.status = endpoint.status
        route.failure_count = endpoint.failure_count
        route.own_plan = Plan(own) if own is not None else None
        route.head, route.private = self._make_heads(endpoint)
        route.method = endpoint.method.encode()
        route.finalize_ms = _finalize_ms(endpoint)
        route.secrets = secrets
        route.signer, route.signer_until = None, 0
        return route


def stored_policy(reference: bytes) -> Policy:
    """A policy that was accepted earlier. One that the bounds of today refuse must not keep the server from
    starting: it is `standard` until it is set anew."""
    try:
        return parse_policy(reference, PROFILES)
    except Problem:
        return PROFILES["standard"]


def breaker_key(url: str) -> str:
    """`scheme://host:port/path` of an accepted URL: the breaker does not care for the query."""
    return url.partition("?")[0]


def _finalize_ms(endpoint: Endpoint) -> int | None:
    wanted = None if endpoint.receipts is None else endpoint.receipts.finalize_within_s
    return None if wanted is None else wanted * 1000
