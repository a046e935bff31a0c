"""Unfinished deliveries that this process keeps: bounded in rows and in bytes, divided by tenant and by endpoint.

A delivery is *held* from the moment an accept promises it until it is recorded. All held deliveries of an event have
one body between them: it counts once, and what comes later with a copy gets the one that is there. What is a copy is
told by the bytes, not by the event's id: an event that is published again has other bytes under its id (their
timestamp), until the ledger has said that it knows the first.

Every bound goes by what is free, so that nobody has to be told of others: a tenant may hold as much as is free (half
of all when it is alone, a third each when two are greedy), and one of its endpoints three quarters of that. Whoever
comes next finds room, whatever the others are owed. Where there is one tenant only, nothing is kept for a second. On a
node that only claims, an endpoint has a fixed number of rows: what is not in its memory another node may send.

What is asked of the ledger is asked for as room is free, and comes a moment later: beside what an accept promised
meanwhile, memory is over its bounds by one call of those that take back at most (`unpark.PULL_ROWS`, `unpark.PULL_BYTES`).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from surehook.core.model import Delivery
from surehook.delivery.directory import Directory
from surehook.delivery.endpoint_state import EndpointState
from surehook.delivery.settings import EngineSettings


class Body(Struct, gc=False):
    """An event's bytes in memory, and how many held deliveries need them."""

    content: bytes
    deliveries: int


class TenantShare(Struct, gc=False):
    """Rows and bytes that one tenant holds. `size` are bytes, each event's counted once."""

    rows: int = 0
    size: int = 0


class Memory:
    """Keeps count of what is held, and says who may hold more."""

    def __init__(self, settings: EngineSettings, directory: Directory) -> None:
        self._settings = settings
        self._directory = directory
        self._bodies: dict[bytes, Body] = {}  # by content
        self._tenants: dict[str, TenantShare] = {}  # of those that hold something
        # Endpoints that have something held: whoever looks at what is held walks over these, however many have been in use.
        self.holders: dict[EndpointState, None] = {}  # an ordered set
        self.held = 0  # deliveries
        self.held_bytes = 0

    # -- counting ---------------------------------------------------------------------------------------

    def hold(self, route: EndpointState, delivery: Delivery) -> None:
        """Count a delivery, and let it share the body that other deliveries of its event have."""
        size = len(delivery.body)
        name = route.endpoint.tenant
        tenant = self._tenants.get(name)
        if tenant is None:
            tenant = self._tenants[name] = TenantShare()
        if not route.held:
            self.holders[route] = None
        route.held += 1
        route.held_bytes += size
        tenant.rows += 1
        self.held += 1
        body = self._bodies.get(delivery.body)
        if body is None:
            self._bodies[delivery.body] = Body(delivery.body, 1)
            tenant.size += size
            self.held_bytes += size
        else:
            body.deliveries += 1
            delivery.body = body.content

    def let_go(self, route: EndpointState, delivery: Delivery) -> None:
        """The delivery has left memory; so has the body with the last of its event."""
        self.let_all_go(((route, delivery),))

    def let_all_go(self, gone: Iterable[tuple[EndpointState, Delivery]]) -> None:
        """The same for many."""
        tenants, bodies = self._tenants, self._bodies
        for route, delivery in gone:
            content = delivery.body
            size = len(content)
            name = route.endpoint.tenant
            tenant = tenants[name]
            route.held -= 1
            if not route.held:
                del self.holders[route]
            route.held_bytes -= size
            tenant.rows -= 1
            self.held -= 1
            body = bodies[content]
            body.deliveries -= 1
            if not body.deliveries:
                del bodies[content]
                tenant.size -= size
                self.held_bytes -= size
            if not tenant.rows:
                del tenants[name]

    # -- bounds -----------------------------------------------------------------------------------------

    def has_room(self) -> bool:
        """Tell whether one more delivery fits at all."""
        return self.held < self._settings.memory_deliveries and self.held_bytes < self._settings.memory_bytes

    def room(self) -> int:
        """Number of deliveries that still fit."""
        return max(0, self._settings.memory_deliveries - self.held) if self.room_bytes() else 0

    def room_bytes(self) -> int:
        """Number of bytes of bodies that still fit."""
        return max(0, self._settings.memory_bytes - self.held_bytes)

    def has_share(self, route: EndpointState) -> bool:
        """Tell whether the endpoint may hold one more delivery."""
        return self.share(route) > 0

    def share(self, route: EndpointState) -> int:
        """Number of deliveries that the endpoint may still hold. The first one of a tenant always fits where there is room,
        however large."""
        rows, held, settings = self.tenant_share(route.endpoint.tenant), route.held, self._settings
        if held and route.held_bytes >= (settings.memory_bytes - self.held_bytes) * 3 >> 2:
            return 0
        most = settings.endpoint_share
        if settings.accepts:
            of_room = (settings.memory_deliveries - self.held) * 3 >> 2
            most = of_room if of_room > most else most
        own = most - held
        return rows if rows < own else own if own > 0 else 0

    def tenant_share(self, name: str) -> int:
        """Number of deliveries that the tenant may still hold."""
        settings = self._settings
        room, free = settings.memory_deliveries - self.held, settings.memory_bytes - self.held_bytes
        if room <= 0 or free <= 0:
            return 0
        tenant = self._tenants.get(name)
        if tenant is None or len(self._directory.tenants) <= 1:
            return room
        if tenant.size >= free:
            return 0
        return max(0, room - tenant.rows)

    def share_bytes(self, route: EndpointState) -> int:
        """Number of bytes that the endpoint may still hold so that its share is not exceeded when it does, where `share` says
        that it may hold more."""
        free = self.room_bytes()
        if self.is_lone:
            return free
        tenant = self._tenants.get(route.endpoint.tenant)
        of_tenant = free - (0 if tenant is None else tenant.size) >> 1
        of_endpoint = (free * 3 - route.held_bytes * 4) // 7
        return max(1, min(of_tenant, of_endpoint))

    def full_tenants(self) -> list[str]:
        """Those that may hold nothing more, although there is room."""
        if not self.has_room() or self.is_lone:
            return []
        rows = self._settings.memory_deliveries - self.held
        size = self._settings.memory_bytes - self.held_bytes
        return [name for name, tenant in self._tenants.items() if tenant.rows >= rows or tenant.size >= size]

    @property
    def is_lone(self) -> bool:
        """Tell whether there is but one tenant, for whom nobody else needs room."""
        return len(self._directory.tenants) <= 1
