"""Who is sent next: slots per lane, slots per endpoint, turns by tenant and by endpoint.

Every endpoint has a queue per lane. A lane keeps the endpoints that could start something now (work waiting and a
slot of their own free) in turns (`Turns`): a tenant with a thousand endpoints gets as many as one with a single
endpoint, and an endpoint with a thousand waiting as many as one with a single delivery.

Endpoints whose last word was a timeout are suspects: all suspects together may use half of a lane, so that
however many endpoints hang, half of the lane stays with those that answer. Where there are several tenants, each has a
part of the slots, and a few beyond them (`delivery/slots.py`): a lane that slow endpoints had filled would be free again
when they have answered, and not before.

Sending goes in slices: after so many starts, or bytes, everything else that is ready has its turn on the event
loop, and however many ask for a pump meanwhile, there is one slice a turn. Otherwise a few hundred requests, signed
and copied one after another, would be a pause for everybody: who publishes passes half a dozen turns of the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from surehook.core.model import FIRST, LANES, RETRY, Delivery, Lane
from surehook.delivery.giving_way import GivingWay
from surehook.delivery.memory import Memory
from surehook.delivery.routes import Directory, Route, queued
from surehook.delivery.settings import EngineSettings
from surehook.delivery.slots import LaneState

Start = Callable[[Route, Delivery, Lane], bool]

# What a lane starts in one go: about a millisecond of work. Small bodies reach the first bound, large ones the second.
SLICE_STARTS = 8
PRESSED_STARTS = 2  # … while somebody waits for the answer to a publish
LONE_STARTS = 64  # where there is one tenant, whom long turns keep from nobody: waves of requests cost less
SLICE_BYTES = 512 << 10


class Dispatch:
    """Queues and slots. Knows nothing of HTTP: `start` sends, and answers False when it did not take the delivery."""

    def __init__(
        self,
        settings: EngineSettings,
        directory: Directory,
        start: Start,
        defect: Callable[[str, BaseException], None],
    ) -> None:
        """`defect` is told of what nothing here can mend."""
        self._defect = defect
        self.memory = Memory(settings, directory)
        self._start = start
        self.lanes = tuple(
            LaneState(slots if lane in settings.lanes else 0)
            for lane, slots in enumerate((settings.slots_first, settings.slots_retry))
        )
        self.spilled = False  # there is due work that only the book holds, for want of memory
        self._is_pumping = False  # a pump is scheduled
        self.waited_for = 0  # publishes that wait for their answer: turns of the loop are kept short for them
        self.way = GivingWay(self._go_on)
        self.paused = False  # nothing new is started (shutdown, lease running out, results piling up)

    # -- work -------------------------------------------------------------------------------------------

    def push(self, route: Route, delivery: Delivery) -> None:
        """A held delivery is due: queue it. `pump` starts it. Of an endpoint that is gone, nothing waits for a turn: it is
        ended at once, since nobody looks for what is held among such endpoints."""
        lane = delivery.lane
        if route.gone:
            self._start(route, delivery, lane)
            return
        route.queues[lane].append(delivery)
        self._join(route, lane)

    def push_front(self, route: Route, delivery: Delivery) -> None:
        """A delivery that could not be started takes its place at the head again."""
        route.queues[delivery.lane].appendleft(delivery)

    def publish_waits(self, *, gives_way: bool) -> None:
        """Somebody calm waits for the answer to a publish; `gives_way`: beside somebody who rushes."""
        self.waited_for += 1
        if gives_way:
            self.way.begin()

    def publish_answered(self) -> None:
        """… and has it."""
        self.waited_for -= 1
        if not self.waited_for:
            self.way.end()

    def _go_on(self) -> None:
        """Way is given no more."""
        for state in self.lanes:
            if state.ring.aside:
                state.ring.bring_back()
        self.pump_soon()

    def pump(self) -> None:
        """Start whatever slots allow, unless a pump that is to come does it: so there is one slice a turn of the loop,
        however many call. The first lane goes first: what it finds slow moves to the other."""
        if self._is_pumping:
            return
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
        try:
            self.pump()
        except Exception as error:  # the loop would log it, and the slots that were taken stay taken
            self._defect("dispatch", error)

    def finished(self, route: Route, lane: Lane, *, suspect: bool) -> None:
        """A request ended: its slots are free. `suspect` is what the route was when it started."""
        state = self.lanes[lane]
        state.give_slot(route.endpoint.tenant)
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
        taken = queued(route)
        if taken:
            route.queues[FIRST].clear()
            route.queues[RETRY].clear()
        return taken

    def startable(self, lane: Lane, *, of_all: int) -> dict[str, int]:
        """By tenant, how many of the lane's queued deliveries have a slot of their endpoint's: what waits for the lane
        alone. Counted up to an equal part of `of_all`: as many endpoints in line are enough, whatever each could start, so
        that a tenant with thousands of them costs no more than what the lane has use for. (Some may have nothing to start
        any more; they leave the line as soon as the lane has a free slot.)"""
        ring = self.lanes[lane].ring
        lines = ring.lines()
        enough = -(-of_all // max(1, len(lines)))
        return {
            tenant: len(line) if len(line) >= enough else sum(_startable(route, lane) for route in line)
            for tenant, line in lines.items()
        }

    def has_startable(self, lane: Lane, count: int) -> bool:
        """Whether the lane has so many, of all tenants together."""
        ring = self.lanes[lane].ring
        if len(ring) >= count:
            return True
        return sum(_startable(route, lane) for line in ring.lines().values() for route in line) >= count

    def in_flight(self) -> dict[str, int]:
        return {name: state.busy for name, state in zip(LANES, self.lanes, strict=True)}

    def _join(self, route: Route, lane: Lane) -> None:
        if not route.ringed[lane] and route.queues[lane] and route.has_slot(lane):
            route.ringed[lane] = True
            self.lanes[lane].ring.add(route)

    def _slice_starts(self) -> int:
        if self.memory.is_lone:
            return LONE_STARTS
        return PRESSED_STARTS if self.waited_for else SLICE_STARTS

    def _pump(self, lane: Lane) -> None:
        state = self.lanes[lane]
        ring, suspects = state.ring, state.suspects
        waiting, waiting_suspects = ring.tenants, suspects.tenants
        cap = max(1, state.slots >> 1)
        starts, size = self._slice_starts(), SLICE_BYTES
        is_lone = self.memory.is_lone
        while not self.paused:
            if waiting_suspects and state.suspects_busy < cap:
                ring.add(suspects.take())
            if not waiting:
                break
            if is_lone and state.busy >= state.slots:
                break
            if starts <= 0 or size <= 0:
                self.pump_soon()
                break
            if not is_lone and not (state.has_part(waiting[0]) and self.way.may_start(waiting[0])):
                ring.set_aside()
                continue
            route = ring.take()
            queue = route.queues[lane]
            if not queue or not route.has_slot(lane):
                route.ringed[lane] = False  # `finished` or `push` brings it back
                continue
            if (
                route.suspect
                and state.suspects_busy >= cap
                and (is_lone or not state.is_owed(route.endpoint.tenant))
            ):
                suspects.add(route)  # stays ringed: it stands in the other line
                continue
            suspect = route.suspect
            delivery = queue.popleft()
            starts -= 1
            size -= len(delivery.body)
            # Slots are taken before the start, so that an answer can never free what was not taken.
            state.take_slot(route.endpoint.tenant)
            route.flying[lane] += 1
            state.suspects_busy += suspect
            if not self._start(route, delivery, lane):
                state.give_slot(route.endpoint.tenant)
                route.flying[lane] -= 1
                state.suspects_busy -= suspect
                # It may have moved to the other lane while its slot here was the endpoint's last.
                self._join(route, RETRY if lane == FIRST else FIRST)
            if queue and route.has_slot(lane):
                ring.add(route)
            else:
                route.ringed[lane] = False


def _startable(route: Route, lane: Lane) -> int:
    return max(0, min(len(route.queues[lane]), route.limits[lane].now - route.flying[lane]))
