"""The nouns of the API: `client.endpoints.create(…)`, `for delivery in client.deliveries.list(…)`.

One text serves both clients: what a method gives is a type parameter. With `Client` that is an answer (`EndpointOut`) or an
iterator of them, with `AsyncClient` an awaitable or an asynchronous iterator, and with the client of the commands plain JSON.

A list gives all entries, newest first, and fetches them a page at a time as they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar, Unpack

from surehook.client.calls import segment
from surehook.client.fields import (
    DeadLetterFilters,
    DeliveryFilters,
    EndpointChanges,
    EndpointFields,
    EndpointFilters,
    EventDeliveryFilters,
    EventFilters,
    EventTypeFields,
    NoticeFilters,
    TenantChanges,
    TenantFields,
)
from surehook.core.answers import (
    AttemptOut,
    BreakerOut,
    DeliveryOut,
    EndpointOut,
    EventOut,
    EventTypeOut,
    LaneOut,
    NoticeOut,
    PreviewOut,
    ReplayOut,
    SecretOut,
    TenantOut,
)
from surehook.core.json_value import JsonObject

One = TypeVar("One", covariant=True)  # an answer
Many = TypeVar("Many", covariant=True)  # a list of them
Done = TypeVar("Done", covariant=True)  # an answer that says nothing more
Other = TypeVar("Other", covariant=True)  # an answer of another noun
Others = TypeVar("Others", covariant=True)
R = TypeVar("R")
T = TypeVar("T")


class ResourceCaller(Protocol):
    """A client, as its resources see it."""

    def call(self, method: str, path: str, *, json: object = None, type: object = ...) -> Any:
        """The answer as `type`, or an awaitable of it."""
        ...

    def pages(self, path: str, query: Mapping[str, object] | None = None, *, type: object = ...) -> Any:
        """The entries of a list as `type`."""
        ...


class Noun(Generic[R]):
    """A noun as an attribute of a client's class: `tenants = Noun(TenantCalls[…])`."""

    def __init__(self, kind: Callable[[ResourceCaller], R]) -> None:
        self._kind = kind

    def __get__(self, client: ResourceCaller, of: object) -> R:
        return self._kind(client)


class _Resource:
    def __init__(self, client: ResourceCaller) -> None:
        self._client = client

    # `T` is what the method that calls says it gives.
    def _call(self, method: str, path: str, *, json: object = None, type: object = None) -> T:  # type: ignore[type-var]
        answer: T = self._client.call(method, path, json=json, type=type)
        return answer

    def _pages(self, path: str, query: Mapping[str, object] | None = None, *, type: object) -> T:  # type: ignore[type-var]
        entries: T = self._client.pages(path, query, type=type)
        return entries


class TenantCalls(_Resource, Generic[One, Many, Done]):
    """Whose endpoints and events they are."""

    def create(self, *, name: str, id: str | None = None, **fields: Unpack[TenantFields]) -> One:
        """Make a tenant. Without `id` the server makes one."""
        given = {"name": name, **fields} if id is None else {"id": id, "name": name, **fields}
        return self._call("POST", "/v1/tenants", json=given, type=TenantOut)

    def get(self, tenant: str) -> One:
        return self._call("GET", f"/v1/tenants/{segment(tenant)}", type=TenantOut)

    def update(self, tenant: str, **changes: Unpack[TenantChanges]) -> One:
        return self._call("PATCH", f"/v1/tenants/{segment(tenant)}", json=changes, type=TenantOut)

    def delete(self, tenant: str) -> Done:
        """Remove a tenant that has no endpoints and no unfinished deliveries."""
        return self._call("DELETE", f"/v1/tenants/{segment(tenant)}")

    def list(self) -> Many:
        return self._pages("/v1/tenants", type=TenantOut)


class EventTypeCalls(_Resource, Generic[One, Many]):
    """Registered types of events, with the schemas of their data."""

    def create(self, *, name: str, **fields: Unpack[EventTypeFields]) -> One:
        return self._call("POST", "/v1/event-types", json={"name": name, **fields}, type=EventTypeOut)

    def get(self, name: str) -> One:
        return self._call("GET", f"/v1/event-types/{segment(name)}", type=EventTypeOut)

    def update(self, name: str, **changes: Unpack[EventTypeFields]) -> One:
        return self._call("PATCH", f"/v1/event-types/{segment(name)}", json=changes, type=EventTypeOut)

    def list(self) -> Many:
        return self._pages("/v1/event-types", type=EventTypeOut)


class EndpointCalls(_Resource, Generic[One, Many, Done, Other, Others]):
    """Receivers of events: a URL each, the event types that it wants, and how they are delivered."""

    def create(
        self, *, tenant: str, url: str, event_types: Sequence[str], **fields: Unpack[EndpointFields]
    ) -> One:
        """Make an endpoint. This answer alone, and that of a rotation, has its `secret`."""
        given = {"tenant": tenant, "url": url, "event_types": event_types, **fields}
        return self._call("POST", "/v1/endpoints", json=given, type=EndpointOut)

    def get(self, endpoint: str) -> One:
        return self._call("GET", f"/v1/endpoints/{segment(endpoint)}", type=EndpointOut)

    def update(self, endpoint: str, **changes: Unpack[EndpointChanges]) -> One:
        """Change, pause or activate an endpoint."""
        return self._call("PATCH", f"/v1/endpoints/{segment(endpoint)}", json=changes, type=EndpointOut)

    def delete(self, endpoint: str) -> Done:
        """Delete an endpoint; its open deliveries are cancelled."""
        return self._call("DELETE", f"/v1/endpoints/{segment(endpoint)}")

    def list(self, **filters: Unpack[EndpointFilters]) -> Many:
        return self._pages("/v1/endpoints", filters, type=EndpointOut)

    def secrets(self, endpoint: str) -> Others:
        """The secrets that sign now (SecretOut), newest first; what they are is never shown."""
        return self._pages(f"/v1/endpoints/{segment(endpoint)}/secrets", type=SecretOut)

    def rotate_secret(self, endpoint: str, *, overlap_s: int | None = None) -> One:
        """A new secret; those before it sign on for `overlap_s` seconds (a day unless given)."""
        given = None if overlap_s is None else {"overlap_s": overlap_s}
        path = f"/v1/endpoints/{segment(endpoint)}/rotate-secret"
        return self._call("POST", path, json=given, type=EndpointOut)

    def test(self, endpoint: str) -> Other:
        """Send one signed request now; the attempt (AttemptOut) says what came of it."""
        return self._call("POST", f"/v1/endpoints/{segment(endpoint)}/test", type=AttemptOut)


class EventCalls(_Resource, Generic[One, Many, Others]):
    """Published events; `Client.send` publishes."""

    def get(self, event: str) -> One:
        return self._call("GET", f"/v1/events/{segment(event)}", type=EventOut)

    def list(self, **filters: Unpack[EventFilters]) -> Many:
        return self._pages("/v1/events", filters, type=EventOut)

    def deliveries(self, event: str, **filters: Unpack[EventDeliveryFilters]) -> Others:
        """The deliveries of an event (DeliveryOut), replays included."""
        return self._pages(f"/v1/events/{segment(event)}/deliveries", filters, type=DeliveryOut)


class DeliveryCalls(_Resource, Generic[One, Many, Others]):
    """One event on its way to one endpoint each."""

    def get(self, delivery: str) -> One:
        return self._call("GET", f"/v1/deliveries/{segment(delivery)}", type=DeliveryOut)

    def list(self, **filters: Unpack[DeliveryFilters]) -> Many:
        return self._pages("/v1/deliveries", filters, type=DeliveryOut)

    def attempts(self, delivery: str) -> Others:
        """The history of a delivery (AttemptOut), newest entry first."""
        return self._pages(f"/v1/deliveries/{segment(delivery)}/attempts", type=AttemptOut)

    def resend(self, delivery: str) -> One:
        """Deliver again: a new delivery for a finished one, or now instead of later for an open one."""
        return self._call("POST", f"/v1/deliveries/{segment(delivery)}/resend", type=DeliveryOut)

    def cancel(self, delivery: str) -> One:
        """Cancel a delivery that is not being sent."""
        return self._call("POST", f"/v1/deliveries/{segment(delivery)}/cancel", type=DeliveryOut)


class DeadLetterCalls(_Resource, Generic[One, Many]):
    """Deliveries that gave up and were neither replayed nor dismissed. Their ids are those of the deliveries."""

    def list(self, **filters: Unpack[DeadLetterFilters]) -> Many:
        return self._pages("/v1/dead-letters", filters, type=DeliveryOut)

    def dismiss(self, delivery: str, *, note: str) -> One:
        """Put a dead letter away, and say why."""
        path = f"/v1/dead-letters/{segment(delivery)}/dismiss"
        return self._call("POST", path, json={"note": note}, type=DeliveryOut)


class ReplayCalls(_Resource, Generic[One]):
    """Jobs that deliver again what a filter matches."""

    def create(self, *, filter: DeliveryFilters, dry_run: bool = False) -> One:
        """Begin to deliver again every finished delivery that `filter` matches; `dry_run` counts them only."""
        where = {name: value for name, value in filter.items() if value is not None}
        return self._call("POST", "/v1/replays", json={"filter": where, "dry_run": dry_run}, type=ReplayOut)

    def get(self, replay: str) -> One:
        return self._call("GET", f"/v1/replays/{segment(replay)}", type=ReplayOut)


class PolicyCalls(_Resource, Generic[One, Many, Other]):
    """The named policies, as JSON objects (docs/policies.md)."""

    def get(self, name: str) -> One:
        return self._call("GET", f"/v1/policies/{segment(name)}", type=JsonObject)

    def list(self) -> Many:
        return self._pages("/v1/policies", type=JsonObject)

    def preview(self, policy: str | JsonObject) -> Other:
        """A policy with its timeline (PreviewOut): what a delivery that never succeeds would live through."""
        return self._call("POST", "/v1/policies/preview", json={"policy": policy}, type=PreviewOut)


class BreakerCalls(_Resource, Generic[One, Many]):
    """URLs that are left alone for a while. `url` is that of any endpoint of the breaker's."""

    def list(self) -> Many:
        """Those of the server that answers, the latest opened first."""
        return self._pages("/v1/breakers", type=BreakerOut)

    def probe(self, *, tenant: str, url: str) -> One:
        """Make the next probe due now."""
        return self._call("POST", "/v1/breakers/probe", json={"tenant": tenant, "url": url}, type=BreakerOut)

    def close(self, *, tenant: str, url: str) -> One:
        """Close a breaker at once, whatever it opened for."""
        return self._call("POST", "/v1/breakers/close", json={"tenant": tenant, "url": url}, type=BreakerOut)


class LaneCalls(_Resource, Generic[Many]):
    """The two lanes, and how many deliveries are held, ready, scheduled and parked in each."""

    def list(self) -> Many:
        return self._pages("/v1/lanes", type=LaneOut)


class NoticeCalls(_Resource, Generic[Many]):
    """News for operators and tenants."""

    def list(self, **filters: Unpack[NoticeFilters]) -> Many:
        return self._pages("/v1/notices", filters, type=NoticeOut)
