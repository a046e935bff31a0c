"""Endpoints that may take parked work back, or will when something has changed.

Whoever learns that there may be room for it says so here: the recorder as a queue runs low, parking itself, the look for
parked groups, whoever hears that a breaker has closed. `unpark.py` serves them in turns.
"""

from __future__ import annotations

import asyncio

from surehook.delivery.endpoint_state import EndpointState
from surehook.delivery.memory import Memory
from surehook.delivery.turns import Line

FULL_LOOKS = 16  # endpoints asked in one record window whether they may hold more by now
# between two times that an endpoint's parked work is handed to the other lane's nodes
WRONG_LANE_REST_S = 1.0
BREAKER_REASONS = ("breaker", "key")


class Refill:
    """Who wants work, and who has to wait for it."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.wanting = Line()
        self._full = Line()  # those that would take back, and may hold nothing more
        # their parked work was another lane's, which has some to do now
        self._resting: set[EndpointState] = set()
        self.wake = asyncio.Event()

    def wants_work(self, route: EndpointState) -> None:
        """This endpoint may be able to take parked work now."""
        if route.parked and route not in self._resting:
            self.wanting.add(route)
            self.wake.set()

    def freed(self, route: EndpointState) -> None:
        """Its breaker does not hold it: what this and other processes parked for that may be taken back."""
        route.may_have_parked(*BREAKER_REASONS)
        self.wants_work(route)

    def is_full(self, route: EndpointState) -> None:
        """It would take back, and may hold nothing more: asked again when deliveries have left memory."""
        self._full.add(route)

    def go_on(self) -> None:
        """Whoever wanted work while nothing was taken back may have some now."""
        if len(self.wanting):
            self.wake.set()

    def let_go(self) -> None:
        """Deliveries have left memory: who waits for a share of it may have one now."""
        self.go_on()
        for _ in range(min(len(self._full), FULL_LOOKS)):
            route = self._full.take()
            if self._memory.has_share(route):
                self.wants_work(route)
            else:
                self._full.add(route)

    def rest(self, route: EndpointState) -> None:
        """Let it rest: its work is another lane's, and our own queue would never say that there is enough of it."""
        self._resting.add(route)
        asyncio.get_running_loop().call_later(WRONG_LANE_REST_S, self._rested, route)

    def _rested(self, route: EndpointState) -> None:
        self._resting.discard(route)
        self.wants_work(route)
