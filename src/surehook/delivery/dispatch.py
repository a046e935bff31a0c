"""Who is sent next: slots per lane, slots per endpoint, turns by tenant and by endpoint.

Every endpoint has a queue per lane. A lane keeps the endpoints that could start something now (work waiting and a
slot of their own free) in turns (`Turns`): a tenant with a thousand endpoints gets as many as one with a single
endpoint, and an endpoint with a thousand waiting as many as one with a single delivery.

Endpoints whose last word was a timeout are suspects: all suspects together may use half of a lane, so that
however many endpoints hang, half of the lane stays with those that answer. Where there are several tenants, each has a
part of the slots, and a few beyond them (`delivery/slots.py`): a lane that slow endpoints had filled would be free again
when they have answered, and not before.

Nothing is sent here: `pump.py` takes out of the queues what is next. It comes after this in the order in which the parts
are made, so whoever changes something here asks for a pump by `pump_soon`, which it waits for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from surehook.core.model import FIRST, LANES, RETRY, Delivery, Lane
from surehook.delivery.directory import Directory
from surehook.delivery.endpoint_state import EndpointState, queued
from surehook.delivery.giving_way import GivingWay
from surehook.delivery.memory import Memory
from surehook.delivery.settings import EngineSettings
from surehook.delivery.slots import LaneState


class Dispatch:
    """Queues and slots. Knows nothing of HTTP."""

    def __init__(self, settings: EngineSettings, directory: Directory) -> None:
        self.memory = Memory(settings, directory)
        self.lanes = tuple(
            LaneState(slots if lane in settings.lanes else 0)
            for lane, slots in enumerate((settings.slots_first, settings.slots_retry))
        )
        self.spilled = False  # there is due work that only the ledger holds, for want of memory
        self.is_due = False  # a pump is to come
        self._pump_waits: asyncio.Future[None] | None = None
        self.waited_for = 0  # publishes that wait for their answer: turns of the loop are kept short for them
        self.way = GivingWay(self._way_is_free)
        self.paused = False  # nothing new is started (shutdown, lease running out, results piling up)
        # of endpoints that are gone: to be ended, whatever is paused
        self.gone: list[tuple[EndpointState, Delivery]] = []

    # -- work -------------------------------------------------------------------------------------------

    def push(self, route: EndpointState, delivery: Delivery) -> None:
        """A held delivery is due: queue it. A pump starts it. Of an endpoint that is gone, nothing waits for a turn, which it
        might never have: the next pump ends it."""
        lane = delivery.lane
        if route.gone:
            self.gone.append((route, delivery))
            self.pump_soon()
            return
        route.queues[lane].append(delivery)
        self.join(route, lane)

    def push_front(self, route: EndpointState, delivery: Delivery) -> None:
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

    def take_gone(self) -> list[tuple[EndpointState, Delivery]]:
        """Take out what is to be ended."""
        gone, self.gone = self.gone, []
        return gone

    def pause(self) -> None:
        """Nothing new is started; `Pausing` says when it is again."""
        self.paused = True

    def go_on(self) -> None:
        """Nothing is in the way any more."""
        self.paused = False

    def spill(self) -> None:
        """There is due work that only the ledger holds."""
        self.spilled = True

    def take_spilled(self) -> bool:
        """Tell whether there was such work, where there is room for it now."""
        if not self.spilled or not self.memory.has_room():
            return False
        self.spilled = False
        return True

    def _way_is_free(self) -> None:
        """Way is given no more."""
        for state in self.lanes:
            if state.ring.aside:
                state.ring.bring_back()
        self.pump_soon()

    def pump_soon(self) -> None:
        """Ask for a pump when everything that is ready now has been seen."""
        if not self.is_due:
            self.is_due = True
            if self._pump_waits is not None and not self._pump_waits.done():
                self._pump_waits.set_result(None)

    async def pump_is_due(self) -> None:
        """Wait until somebody has asked for a pump, a turn of the loop at least. For one who waits."""
        if self.is_due:
            await asyncio.sleep(0)
        else:
            self._pump_waits = asyncio.get_running_loop().create_future()
            await self._pump_waits
        self.is_due = False

    def finished(self, route: EndpointState, lane: Lane, *, suspect: bool) -> None:
        """A request ended: its slots are free. `suspect` is what the route was when it started."""
        state = self.lanes[lane]
        if suspect:
            state.suspects_busy -= 1
        state.give_slot(route.endpoint.tenant)
        route.flying[lane] -= 1
        self.join(route, lane)
        other: Lane = RETRY if lane == FIRST else FIRST
        if route.queues[other]:
            self.join(route, other)
        self.pump_soon()

    def on_token(self, route: EndpointState) -> None:
        """An endpoint that could not start anything for want of a token may do so again."""
        if route.queues[FIRST] or route.queues[RETRY]:
            self.join(route, FIRST)
            self.join(route, RETRY)
            self.pump_soon()

    def drain(self, route: EndpointState) -> list[Delivery]:
        """Take everything that waits for this endpoint out of its queues (to be parked, cancelled, handed back)."""
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
        """Tell whether the lane has so many, of all tenants together."""
        ring = self.lanes[lane].ring
        if len(ring) >= count:
            return True
        return sum(_startable(route, lane) for line in ring.lines().values() for route in line) >= count

    def held_ids(self) -> Iterator[bytes]:
        """Everything that waits here."""
        for route in self.memory.holders:
            yield from (delivery.id for delivery in queued(route))
        yield from (delivery.id for _, delivery in self.gone)

    def drain_all(self) -> list[tuple[EndpointState, Delivery]]:
        """Take out everything that waits here."""
        waiting = self.take_gone()
        for route in self.memory.holders:
            waiting += [(route, delivery) for delivery in self.drain(route)]
        return waiting

    def in_flight(self) -> dict[str, int]:
        return {name: state.busy for name, state in zip(LANES, self.lanes, strict=True)}

    def join(self, route: EndpointState, lane: Lane) -> None:
        if not route.ringed[lane] and route.queues[lane] and route.has_slot(lane):
            route.ringed[lane] = True
            self.lanes[lane].ring.add(route)


def _startable(route: EndpointState, lane: Lane) -> int:
    return max(0, min(len(route.queues[lane]), route.limits[lane].now - route.flying[lane]))
