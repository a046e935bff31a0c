"""The configuration in memory, for the hot path: no look-up in the ledger per event, none per delivery.

`Directory` builds what is known of each endpoint from rows of the configuration, one by one as they change, and keeps
running state across changes.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from surehook.core.authentication import ClientCredentials
from surehook.core.envelope import EventIn
from surehook.core.errors import Problem
from surehook.core.json_text import quoted
from surehook.core.model import Endpoint, EventType, Secret, Tenant
from surehook.core.policy import BreakerPolicy, HeaderNames
from surehook.core.profiles import PROFILES
from surehook.core.schema import Schema
from surehook.core.schema_versions import Versions
from surehook.core.subscription import Matcher
from surehook.delivery.breakers import Breakers, breaker_key
from surehook.delivery.credential import Credential
from surehook.delivery.endpoint_state import EndpointState, QuietEndpointState
from surehook.delivery.freshness import Changed
from surehook.delivery.plans import Plan, stored_policy
from surehook.ports.transport import Transport

METHODS: dict[str, bytes] = {"POST": b"POST", "PUT": b"PUT", "PATCH": b"PATCH"}


class Directory:
    """The configuration in memory. `version` is what accepting transactions are checked against."""

    def __init__(self, *, transport: Transport, slots: int, together: bool = False) -> None:
        """`together`: nodes decide together about breakers."""
        self._transport = transport
        self._slots = slots
        self.version = -1
        self.changed = Changed()
        self.tenants: dict[str, Tenant] = {}
        self.types: dict[str, EventType] = {}
        self.schemas: dict[str, Versions] = {}  # of the event types that have any
        # By its bytes, while a type has it or a call registers it: a description that changes must not cost what a schema costs.
        self.compiled: WeakValueDictionary[bytes, Schema] = WeakValueDictionary()
        self.routes: dict[bytes, EndpointState] = {}
        self.breakers = Breakers(together=together)
        self._of_tenant: dict[str, dict[bytes, EndpointState]] = {}
        # by tenant, made when first asked after a change
        self._matchers: dict[str, Matcher[EndpointState]] = {}
        # A credential lives while an endpoint has it or a fetch is under way: nothing is fetched twice at once.
        self._credentials: WeakValueDictionary[tuple[str, ClientCredentials], Credential] = (
            WeakValueDictionary()
        )
        self._of_credential: WeakKeyDictionary[Credential, dict[EndpointState, None]] = WeakKeyDictionary()
        self._plans: WeakValueDictionary[bytes, Plan] = WeakValueDictionary()  # by the policy as it was given
        self._type_plans: dict[str, Plan] = {}
        self._without_breaker: set[str] = set()  # event types whose policy has none
        self._standard = Plan(PROFILES["standard"])

    # -- what the loader does (delivery/loading.py): `version` is that of the change ----------------------

    def is_at(self, version: int) -> None:
        """Every change up to this version is taken over."""
        self.version = version

    def put_tenant(self, tenant: Tenant, version: int) -> None:
        self.tenants[tenant.id] = tenant
        self.changed.tenant(tenant.id, version)

    def drop_tenant(self, tenant: str, version: int) -> None:
        self.tenants.pop(tenant, None)
        self.changed.tenant(tenant, version)

    def put_type(self, event_type: EventType, schemas: Versions | None, version: int) -> bool:
        """Tell whether its policy got or lost its breaker: its endpoints `heed` another one then."""
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

    def put_endpoint(self, endpoint: Endpoint, secrets: tuple[Secret, ...], version: int) -> EndpointState:
        """The endpoint's route, made or changed. What runs goes on."""
        before = self.routes.get(endpoint.id)
        filters = None if before is None else before.endpoint.event_types
        route = self._route(endpoint, secrets)
        self._share_credential(route)
        self.routes[endpoint.id] = route
        if filters != endpoint.event_types:
            self._of_tenant.setdefault(endpoint.tenant, {})[endpoint.id] = route
            self._matchers.pop(endpoint.tenant, None)
        self.changed.tenant(endpoint.tenant, version)
        return route

    def drop_endpoint(self, id: bytes, version: int) -> EndpointState | None:
        """The route whose endpoint is gone; None where there was none."""
        route = self.routes.pop(id, None)
        if route is None:
            return None
        route.gone = True
        self.breakers.leave(route)
        tenant = route.endpoint.tenant
        if route.credential is not None:
            del self._of_credential[route.credential][route]
        mine = self._of_tenant[tenant]
        del mine[id]
        if not mine:
            del self._of_tenant[tenant]
        self._matchers.pop(tenant, None)
        self.changed.tenant(tenant, version)
        return route

    # -- what the hot path asks -------------------------------------------------------------------------

    def fan_out(self, tenant: str, event_type: str) -> tuple[EndpointState, ...]:
        """The routes that want an event, in the order of their endpoints' ids."""
        matcher = self._matchers.get(tenant)
        if matcher is None:
            mine = self._of_tenant.get(tenant)
            if mine is None:
                return ()
            entries = ((route, route.endpoint.event_types) for _, route in sorted(mine.items()))
            matcher = self._matchers[tenant] = Matcher(entries)
        return matcher.match(event_type)

    def with_credential(self, credential: Credential) -> list[EndpointState]:
        """The endpoints that have it."""
        return list(self._of_credential.get(credential, ()))

    def endpoints_of(self, tenant: str) -> int:
        """Number of endpoints that a tenant has."""
        return len(self._of_tenant.get(tenant, ()))

    def refuses(self, event: EventIn) -> Problem | None:
        """Return the objection of the configuration in memory to an event: its tenant, its type, its version's schema."""
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
        """Number of steps that judging the event takes at most, by a glance at it (core/schema_cost.py)."""
        schemas = self.schemas.get(event.type)
        return 0 if schemas is None else schemas.weight(event)

    def plan(self, route: EndpointState, event_type: str) -> Plan:
        """The policy of one delivery: the endpoint's own, else the event type's, else `standard`."""
        if route.own_plan is not None:
            return route.own_plan
        return self._type_plans.get(event_type, self._standard)

    def header_names(self) -> list[tuple[str, HeaderNames]]:
        """The event types whose policy puts something under a header of its choice, and which."""
        named = ((name, plan.policy.headers) for name, plan in self._type_plans.items())
        return [(name, headers) for name, headers in named if headers != HeaderNames()]

    def youngest_age(self, route: EndpointState | None) -> float | None:
        """The smallest `max_age` (seconds) of the policies that may hold for the endpoint's deliveries; None: for those of
        any endpoint without a policy of its own."""
        plans = self._plans_of(route)
        return min((plan.policy.max_age for plan in plans if plan.policy.max_age is not None), default=None)

    def may_call_off(self, *, endpoint: bytes | None = None, event_type: str | None = None) -> bool:
        """Tell whether a policy that may hold for deliveries of the endpoint, or of the event type, makes no retries."""
        if event_type is not None:
            plans = [self._type_plans.get(event_type, self._standard)]
        else:
            plans = self._plans_of(None if endpoint is None else self.routes.get(endpoint))
        return any(not plan.policy.auto_retry for plan in plans)

    def _plans_of(self, route: EndpointState | None) -> list[Plan]:
        """Those that may hold for the endpoint's deliveries; None: for those of any endpoint without one of its own."""
        own = None if route is None else route.own_plan
        return [own] if own is not None else [self._standard, *self._type_plans.values()]

    def heed(self, route: EndpointState) -> None:
        """The policies of event types that the endpoint takes have changed."""
        route.breaker_policy = self._breaker_policy(route)
        self.breakers.unsettle(route.breaker)

    def _breaker_policy(self, route: EndpointState) -> BreakerPolicy | None:
        """The breaker of the endpoint's own policy. Without one it is that of `standard`, or none where each event type that
        the endpoint names has a policy without."""
        if route.own_plan is not None:
            return route.own_plan.policy.breaker
        if self._without_breaker.issuperset(route.endpoint.event_types):
            return None
        return self._standard.policy.breaker

    def _share_credential(self, route: EndpointState) -> None:
        """Give the endpoint what it gets tokens by: one for all of the tenant's endpoints with the same credential."""
        client, former = route.endpoint.authentication, route.credential
        if former is not None:
            if former.client == client:
                return
            del self._of_credential[former][route]
            route.credential = None
        if isinstance(client, ClientCredentials):
            key = (route.endpoint.tenant, client)
            credential = self._credentials.get(key)
            if credential is None:
                credential = self._credentials[key] = Credential(*key)
            self._of_credential.setdefault(credential, {})[route] = None
            route.credential = credential

    def _route(self, endpoint: Endpoint, secrets: tuple[Secret, ...]) -> EndpointState:
        own = None if endpoint.policy is None else self._plan_of(endpoint.policy)
        route = self.routes.get(endpoint.id)
        joins = True
        if route is None:
            route = QuietEndpointState(endpoint, self._transport, self._slots)
        else:
            joins = breaker_key(route.endpoint.url) != breaker_key(endpoint.url)
            if joins:
                self.breakers.leave(route)
            _ask_anew(route, endpoint, secrets)
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
        route.finalize_ms = _finalize_ms(endpoint)
        route.secrets = secrets
        route.signer, route.signer_until = None, 0
        return route

    def _plan_of(self, reference: bytes) -> Plan:
        """One for all who give the same policy: spelled out it takes 6 KB."""
        plan = self._plans.get(reference)
        if plan is None:
            plan = self._plans[reference] = Plan(stored_policy(reference))
        return plan


def _ask_anew(route: EndpointState, endpoint: Endpoint, secrets: tuple[Secret, ...]) -> None:
    """Give it the endpoint as it is now, and make anew what its requests are made from, as far as that is other now."""
    before, route.endpoint = route.endpoint, endpoint
    if _request_of(before, route.secrets) != _request_of(endpoint, secrets):
        route.asked += 1
    if isinstance(route, QuietEndpointState):
        return
    route.make_heads()
    if (before.url, before.tls) != (endpoint.url, endpoint.tls):
        route.make_target()
        route.forget_pace()


def _request_of(endpoint: Endpoint, secrets: tuple[Secret, ...]) -> tuple[object, ...]:
    """Everything of an endpoint that its requests are made from; its policy says how, not what is asked."""
    return (endpoint.url, endpoint.tls, endpoint.method, endpoint.headers, endpoint.authentication, secrets)


def _finalize_ms(endpoint: Endpoint) -> int | None:
    """Time that its receiver may be silent after a delivery."""
    wanted = None if endpoint.receipts is None else endpoint.receipts.finalize_within_s
    return None if wanted is None else wanted * 1000
