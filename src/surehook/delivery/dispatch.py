"""Who is sent next: slots per lane, slots per endpoint, round robin between endpoints.

Every endpoint has a queue per lane. A lane keeps a ring of the endpoints that could start something now:
work waiting and a slot of their own free. Starting takes the ring's head and puts it back at the end, so one
endpoint with a thousand waiting gets as many turns as one with a single delivery.

Endpoints whose last word was a timeout are suspects: all suspects together may use half of a lane, so that
however many endpoints hang, half of the lane stays with those that answer.

Memory is bounded here as well. A delivery is *held* from the moment an accept promises it until it is
recorded; `room` says whether one more fits. An endpoint may take three quarters of what is free and always
`endpoint_share`, so that a lone customer can use the memory of an idle server and no customer can use it all.
On a node that only claims it is `endpoint_share`: what is not in its memory another node may send.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from surehook.core.model import FIRST, LANES, RETRY, Delivery, Lane
from surehook.delivery.routes import Route
from surehook.delivery.settings import EngineSettings

Start = Callable[[Route, Delivery, Lane], bool]


class LaneState:
    """One lane's slots and the ring of endpoints that could use one."""

    __slots__ = ("busy", "ring", "slots", "suspects", "suspects_busy")

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.busy = 0
        self.suspects_busy = 0
        self.ring: deque[Route] = deque()
        self.suspects: deque[Route] = deque()  # endpoints set aside until another suspect's slot is free


class Dispatch:
    """Queues and slots. Knows nothing of HTTP: `start` sends, and answers False when it did not take the delivery."""

    def __init__(self, settings: EngineSettings, start: Start) -> None:
        self._settings = settings
        self._start = start
        self.lanes = tuple(
            LaneState(slots if lane in settings.lanes else 0)
            for lane, slots in enumerate((settings.slots_first, settings.slots_retry))
        )
        self.held = 0
        self.held_bytes = 0
        self.spilled = False  # there is due work that only the book holds, for want of memory
        self._is_pumping = False  # a pump is scheduled
        self.paused = False  # nothing new is started (shutdown, lease running out, results piling up)

    # -- memory -----------------------------------------------------------------------------------------

    def has_room(self) -> bool:
        """Whether one more delivery fits into memory at all."""
        return self.held < self._settings.memory_deliveries and self.held_bytes < self._settings.memory_bytes

    def has_share(self, route: Route) -> bool:
        """Whether the endpoint may keep one more delivery in memory."""
        return self.share(route) > 0

    def share(self, route: Route) -> int:
        """How many more deliveries the endpoint may keep in memory."""
        most = self._settings.endpoint_share
        if self._settings.accepts:
            most = max(most, (self._settings.memory_deliveries - self.held) * 3 >> 2)
        return max(0, most - route.held)

    def room(self) -> int:
        """How many more deliveries fit."""
        if self.held_bytes >= self._settings.memory_bytes:
            return 0
        return max(0, self._settings.memory_deliveries - self.held)

    def hold(self, route: Route, size: int) -> None:
        route.held += 1
        self.held += 1
        self.held_bytes += size

    def let_go(self, route: Route, size: int) -> None:
        route.held -= 1
        self.held -= 1
        self.held_bytes -= size

    # -- work -------------------------------------------------------------------------------------------

    def push(self, route: Route, delivery: Delivery) -> None:
        """A held delivery is due: queue it. `pump` starts it."""
        lane = delivery.lane
        route.queues[lane].append(delivery)
        self._join(route, lane)

    def push_front(self, route: Route, delivery: Delivery) -> None:
        """A delivery that could not be started takes its place at the head again."""
        route.queues[delivery.lane].appendleft(delivery)

    def pump(self) -> None:
        """Start whatever slots allow. The first lane goes first: what it finds slow moves to the other."""
        if self.lanes[FIRST].ring or self.lanes[FIRST].suspects:
            self._pump(FIRST)
        if self.lanes[RETRY].ring or self.lanes[RETRY].suspects:
            self._pump(RETRY)

    def pump_soon(self) -> None:
        """Pump once when everything that is ready now has been seen."""
        if not self._is_pumping:
            self._is_pumping = True
            asyncio.get_running_loop().call_soon(self._pump_now)

    def _pump_now(self) -> None:
        self._is_pumping = False
        self.pump()

    def finished(self, route: Route, lane: Lane, *, suspect: bool) -> None:
        """A request ended: its slots are free. `suspect` is what the route was when it started."""
        state = self.lanes[lane]
        state.busy -= 1
        route.flying[lane] -= 1
        if suspect:
            state.suspects_busy -= 1
        self._join(route, lane)
        other: Lane = RETRY if lane == FIRST else FIRST
        if route.queues[other]:
            self._join(route, other)
        self.pump_soon()

    def welcome(self, route: Route) -> None:
        """An endpoint that could not start anything for want of a token may do so again."""
        if route.queues[FIRST] or route.queues[RETRY]:
            self._join(route, FIRST)
            self._join(route, RETRY)
            self.pump_soon()

    def drain(self, route: Route) -> list[Delivery]:
        """Take everything that waits for this endpoint out of the queues (to be parked, cancelled, handed back)."""
        taken = [*route.queues[FIRST], *route.queues[RETRY]]
        route.queues[FIRST].clear()
        route.queues[RETRY].clear()
        return taken

    def startable(self, lane: Lane) -> int:
        """How many of the lane's queued deliveries have a slot of their endpoint's: what waits for the lane alone."""
        state = self.lanes[lane]
        return sum(
            min(len(route.queues[lane]), route.limits[lane].now - route.flying[lane]) for route in state.ring
        )

    def in_flight(self) -> dict[str, int]:
        return {name: state.busy for name, state in zip(LANES, self.lanes, strict=True)}

    def _join(self, route: Route, lane: Lane) -> None:
        if not route.ringed[lane] and route.queues[lane] and route.has_slot(lane):
            route.ringed[lane] = True
            self.lanes[lane].ring.append(route)

    def _pump(self, lane: Lane) -> None:
        state = self.lanes[lane]
        ring = state.ring
        cap = max(1, state.slots >> 1)
        while state.busy < state.slots and not self.paused:
            if state.suspects and state.suspects_busy < cap:
                ring.append(state.suspects.popleft())
            if not ring:
                break
            route = ring.popleft()
            queue = route.queues[lane]
            if not queue or not route.has_slot(lane):
                route.ringed[lane] = False  # `finished` or `push` brings it back
                continue
            if route.suspect and state.suspects_busy >= cap:
                state.suspects.append(route)  # stays ringed: it stands in the other line
                continue
            suspect = route.suspect
            delivery = queue.popleft()
            # Slots are taken before the start, so that an answer can never free what was not taken.
            state.busy += 1
            route.flying[lane] += 1
            state.suspects_busy += suspect
            if not self._start(route, delivery, lane):
                state.busy -= 1
                route.flying[lane] -= 1
                state.suspects_busy -= suspect
                # It may have moved to the other lane while its slot here was the endpoint's last.
                self._join(route, RETRY if lane == FIRST else FIRST)
            if queue and route.has_slot(lane):
                ring.append(route)
            else:
                route.ringed[lane] = False
