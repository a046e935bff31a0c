"""An endpoint's slots in parts: several nodes that call one endpoint have as many requests under way to it as one alone.

With each exchange (`delivery/cluster_health.py`) a node names the endpoints that it could use more slots of, and hears how many
nodes named each. What it has heard holds for `BUSY_MS`, so that a node that falls silent leaves its part to the others:
what seems to hold for longer was heard before the clock was set back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set

from surehook.delivery.directory import Directory
from surehook.delivery.endpoint_state import EndpointState
from surehook.delivery.flight import Flight
from surehook.ports.health import BUSY_MS


class SlotParts:
    """This node's part of each endpoint's `slots`. `flights` are the requests under way."""

    def __init__(self, *, directory: Directory, flights: Set[Flight], slots: int) -> None:
        self._directory = directory
        self._flights = flights
        self._slots = slots
        self._until: dict[EndpointState, int] = {}  # endpoints of which we have a part, until when

    def busy(self) -> list[bytes]:
        """Endpoints that use half of what they may and more: only they need to know of other nodes."""
        flying = Counter(flight.route for flight in self._flights)
        return sorted(route.endpoint.id for route, count in flying.items() if count * 2 >= route.slots)

    def divide(self, sharers: Mapping[bytes, int], now: int) -> None:
        """So many nodes want each of these endpoints; of others we have heard nothing new."""
        for endpoint, nodes in sharers.items():
            route = self._directory.routes.get(endpoint)
            if route is not None:
                route.slots = max(1, self._slots // nodes)
                self._until[route] = now + BUSY_MS
        for route in [route for route, until in self._until.items() if not now < until <= now + BUSY_MS]:
            del self._until[route]
            route.slots = self._slots

    def whole(self) -> None:
        """The others cannot be asked: all slots are ours."""
        for route in self._until:
            route.slots = self._slots
        self._until.clear()
