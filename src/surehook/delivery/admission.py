"""Who may join the line of events that wait for their commit.

The line is bounded in events and bytes, which are memory, and for each tenant in deliveries, which are time. A tenant may have
three times as much waiting as it leaves free: a lone one can use three quarters of the line, and however many fill
it, something stays free for whoever comes next (the dynamic thresholds of switches with shared memory). Beyond its
share a tenant is refused with `tenant_overloaded`, and nobody else is; `overloaded` means the line as a whole.

Deliveries have no bound over all tenants. They hold no memory before they are written, and as tenants take turns,
those of others delay nobody by more than a turn. A tenant with nothing waiting may always bring a request,
however many deliveries it comes to: they are written a flush at a time.
"""

from __future__ import annotations

from surehook.core.errors import Overloaded, TenantOverloaded
from surehook.delivery.settings import EngineSettings

EVENT_BYTES = 600  # of an event that waits, beside its data: its texts, its key, its places in the lines


class TenantLoad:
    """Events of one tenant in the line."""

    __slots__ = ("deliveries", "events", "size")

    def __init__(self) -> None:
        self.events = 0
        self.deliveries = 0
        self.size = 0


class Admission:
    """Counts what waits, from its admission to its answer, by tenant."""

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._tenants: dict[str, TenantLoad] = {}  # of those that have something in the line
        self.events = 0
        self.size = 0

    def admit(self, tenant: str, events: int, deliveries: int, size: int) -> Overloaded | None:
        """Count a request's events of one tenant in; or say why they may not join, and count nothing."""
        own = self._tenants.get(tenant)
        if self.events:  # nothing is gained by refusing what comes into an empty line
            refusal = self._refusal(own, events, deliveries, size)
            if refusal is not None:
                return refusal
        if own is None:
            own = self._tenants[tenant] = TenantLoad()
        own.events += events
        own.deliveries += deliveries
        own.size += size
        self.events += events
        self.size += size
        return None

    def cost(self, tenant: str) -> int:
        """Of what a tenant has waiting, in the unit of turns."""
        own = self._tenants[tenant]
        return own.events + own.deliveries + (own.size >> 10)

    def leave(self, tenant: str, events: int, deliveries: int, size: int) -> None:
        """Events of one tenant have their answer."""
        own = self._tenants[tenant]
        own.events -= events
        own.deliveries -= deliveries
        own.size -= size
        self.events -= events
        self.size -= size
        if not own.events:
            del self._tenants[tenant]

    def _refusal(self, own: TenantLoad | None, events: int, deliveries: int, size: int) -> Overloaded | None:
        free = self._settings.waiting_events - self.events - events
        free_size = self._settings.waiting_bytes - self.size - size
        if own is not None:
            if own.deliveries + deliveries > self._settings.waiting_deliveries:
                return TenantOverloaded("too many deliveries of this tenant are waiting for the disk")
            if own.events + events > 3 * max(0, free):
                return TenantOverloaded("too many events of this tenant are waiting for the disk")
            if own.size + size > 3 * max(0, free_size):
                return TenantOverloaded("too many bytes of this tenant are waiting for the disk")
        if free < 0:
            return Overloaded("too many events are waiting for the disk")
        if free_size < 0:
            return Overloaded("too many bytes are waiting for the disk")
        return None
