"""An event on its way in: its id, its body rendered once, and a delivery for each endpoint that wants it.

What events of one tenant and type have in common is worked out once (`Kind`): who wants them, by which lane, whether
an endpoint takes deliveries now. That is true until the event loop goes on, and whoever makes events forgets it then.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from surehook.core import envelope, ids, instants, lanes
from surehook.core.envelope import EventIn
from surehook.core.model import Delivery, Event, Lane
from surehook.delivery.directory import Directory
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.endpoint_state import EndpointState
from surehook.delivery.handoff.send import Send
from surehook.delivery.settings import EngineSettings
from surehook.ports.entropy import Entropy
from surehook.ports.ledger import Incoming


class Birth(Struct, gc=False):
    """Properties of a delivery to one endpoint that is born at this moment."""

    route: EndpointState
    lane: Lane
    overdue_at: int | None
    parked: str | None
    is_ours: bool  # this process may hold them


class Kind(Struct, gc=False):
    """Everything that the events of a tenant and type have in common at this moment. `births` of the first routes
    only, where there are more than are made in one go."""

    routes: Sequence[EndpointState]
    births: Sequence[Birth]
    schema_version: str
    frame: envelope.Frame


class Making:
    """Makes what is written of an event, and takes what its deliveries need of memory and of the broker."""

    def __init__(
        self,
        *,
        entropy: Entropy,
        settings: EngineSettings,
        directory: Directory,
        dispatch: Dispatch,
        send: Send | None,
    ) -> None:
        self._entropy = entropy
        self._settings = settings
        self._directory = directory
        self._memory = dispatch.memory
        self._send = send
        self._count = 0  # ids made in the millisecond `_count_ms`
        self._count_ms = -1

    def kind(self, tenant: str, event_type: str, now: int) -> Kind:
        registered = self._directory.types.get(event_type)
        version = registered.schema_version if registered is not None else "1"
        routes = self._directory.fan_out(tenant, event_type)
        births = self.births(routes[: self._settings.slice_rows], event_type, now)
        frame = envelope.Frame(type=event_type, tenant=tenant, schema_version=version)
        return Kind(routes, births, version, frame)

    def births(self, routes: Sequence[EndpointState], event_type: str, now: int) -> list[Birth]:
        births = []
        for route in routes:
            policy = self._directory.plan(route, event_type).policy
            lane = lanes.first_lane(policy, is_slow=route.pace.is_slow)
            escalate = policy.escalate_after
            overdue_at = None if escalate is None else now + int(escalate * 1000)
            births.append(Birth(route, lane, overdue_at, route.block_reason, lane in self._settings.lanes))
        return births

    def incoming(self, event: EventIn, key: str | None, kind: Kind, now: int, written_now: str) -> Incoming:
        """The event as it will be written; its deliveries are still to be added. `written_now`: the instant as text."""
        given = event.id
        event_id = self._new_id(now) if given is None else given
        text = ids.text(ids.EVENT, event_id)
        if _is_plain(event):
            body = kind.frame.body(id=text, timestamp=written_now, data=event.data)
            version, digest = kind.schema_version, kind.frame.digest(event.data)
        else:
            version, digest = event.schema_version or kind.schema_version, envelope.digest_of(event)
            body = envelope.render_body(
                id=text,
                type=event.type,
                timestamp=written_now if event.occurred_at is None else instants.render(event.occurred_at),
                tenant=event.tenant,
                schema_version=version,
                subject=event.subject,
                sequence=event.sequence,
                workflow_version=event.workflow_version,
                correlation_id=event.correlation_id,
                causation_id=event.causation_id,
                source=event.source,
                data=event.data,
            )
        # The first four go by place, as in `Deliver._settle`: a call with more than thirty arguments has its price.
        made = Event(
            event_id,
            event.tenant,
            event.type,
            version,
            subject=event.subject,
            sequence=event.sequence,
            workflow_version=event.workflow_version,
            correlation_id=event.correlation_id,
            causation_id=event.causation_id,
            source=event.source,
            occurred_at=event.occurred_at,
            accepted_at=now,
            body=body,
            digest=digest,
            fan_out=len(kind.routes),
            idempotency_key=key,
        )
        return Incoming(made, [], given is not None)

    def deliver(self, incoming: Incoming, births: Sequence[Birth], now: int) -> None:
        """Add a delivery for each of `births`."""
        event, memory = incoming.event, self._memory
        for birth in births:
            route = birth.route
            delivery = Delivery(
                id=ids.delivery_id(event.id, self._entropy.bits(6)),
                event=event.id,
                endpoint=route.endpoint.id,
                tenant=event.tenant,
                type=event.type,
                lane=birth.lane,
                attempt=1,
                due_at=now,
                born_at=now,
                body=event.body,
                overdue_at=birth.overdue_at,
                parked=birth.parked,
            )
            if birth.parked is None:
                if birth.is_ours and memory.has_room():
                    if memory.has_share(route) and "share" not in route.parked:
                        delivery.held = True
                        memory.hold(route, delivery)
                    else:
                        delivery.parked = "share"
                elif self._send is not None:
                    delivery.handed = self._send.reserve(birth.lane)
            incoming.deliveries.append(delivery)

    def give_back(self, incoming: Incoming, routes: Sequence[EndpointState]) -> None:
        """Free again the places in memory and at the broker that the deliveries of an event were promised."""
        # Where making them was cut short, there are fewer deliveries than routes.
        for route, delivery in zip(routes, incoming.deliveries, strict=False):
            if delivery.held:
                delivery.held = False
                self._memory.let_go(route, delivery)
            if delivery.handed:
                assert self._send is not None
                delivery.handed = 0
                self._send.give_back(delivery.lane)

    def _new_id(self, now: int) -> bytes:
        """A fresh id that sorts after those made before it in the same millisecond (RFC 9562, fixed-length counter)."""
        self._count = (self._count + 1) & 0xFFF if now == self._count_ms else 0
        self._count_ms = now
        return ids.counted_uuid7(now, self._count, self._entropy.bits(8))


def _is_plain(event: EventIn) -> bool:
    """Tell whether tenant, type and data are all that was given, beside an id and a key."""
    return (
        event.subject is None
        and event.sequence is None
        and event.schema_version is None
        and event.workflow_version is None
        and event.correlation_id is None
        and event.causation_id is None
        and event.source is None
        and event.occurred_at is None
    )
