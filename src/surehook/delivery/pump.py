"""Sending in slices: what `Dispatch` says is next, as long as slots allow.

After so many starts, or bytes, everything else that is ready has its turn on the event loop, and however many ask for a pump
meanwhile, there is one slice a turn. Otherwise a few hundred requests, signed and copied one after another, would be a pause
for everybody: who publishes passes half a dozen turns of the loop.
"""

from __future__ import annotations

from surehook.core.model import FIRST, RETRY, Lane
from surehook.delivery.deliver import Deliver
from surehook.delivery.dispatch import Dispatch

# What a lane starts in one go: about a millisecond of work. Small bodies reach the first bound, large ones the second.
SLICE_STARTS = 8
PRESSED_STARTS = 2  # … while somebody waits for the answer to a publish
LONE_STARTS = 64  # where there is one tenant, whom long turns keep from nobody: waves of requests cost less
SLICE_BYTES = 512 << 10


class Pump:
    """Takes deliveries out of the queues and has them sent."""

    def __init__(self, dispatch: Dispatch, deliver: Deliver) -> None:
        self._dispatch = dispatch
        self._deliver = deliver
        self._start = deliver.start

    async def run(self) -> None:
        """Pump whenever somebody has asked for it, when everything that was ready then has been seen; for ever."""
        while True:
            await self._dispatch.pump_is_due()
            self.pump()

    def pump(self) -> None:
        """Start whatever slots allow, unless a pump that is to come does it: so there is one slice a turn of the loop,
        however many call. The first lane goes first: what it finds slow moves to the other."""
        dispatch = self._dispatch
        if dispatch.is_due:
            return
        if dispatch.gone:
            for route, delivery in dispatch.take_gone():
                self._deliver.end_deleted(route, delivery)
        if dispatch.lanes[FIRST].ring or dispatch.lanes[FIRST].suspects:
            self._pump(FIRST)
        if dispatch.lanes[RETRY].ring or dispatch.lanes[RETRY].suspects:
            self._pump(RETRY)

    def _slice_starts(self) -> int:
        if self._dispatch.memory.is_lone:
            return LONE_STARTS
        return PRESSED_STARTS if self._dispatch.waited_for else SLICE_STARTS

    def _pump(self, lane: Lane) -> None:
        dispatch = self._dispatch
        state = dispatch.lanes[lane]
        ring, suspects = state.ring, state.suspects
        waiting, waiting_suspects = ring.tenants, suspects.tenants
        cap, owed_cap = state.suspects_most, state.owed_suspects_most
        starts, size = self._slice_starts(), SLICE_BYTES
        is_lone = dispatch.memory.is_lone
        most = state.slots if is_lone else state.most
        while not dispatch.paused:
            if state.busy >= most:
                break
            if waiting_suspects:
                if state.suspects_busy < cap:
                    ring.add(suspects.take())
                elif not is_lone and state.owes_suspect():
                    ring.add_first(suspects.take())  # or whoever has just had an answer would be first again
            if not waiting:
                break
            if starts <= 0 or size <= 0:
                dispatch.pump_soon()
                break
            if not is_lone and not (state.has_part(waiting[0]) and dispatch.way.may_start(waiting[0])):
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
                and (is_lone or state.suspects_busy >= owed_cap or not state.is_owed(route.endpoint.tenant))
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
                state.suspects_busy -= suspect
                state.give_slot(route.endpoint.tenant)
                route.flying[lane] -= 1
                # It may have moved to the other lane while its slot here was the endpoint's last.
                dispatch.join(route, RETRY if lane == FIRST else FIRST)
            if queue and route.has_slot(lane):
                ring.add(route)
            else:
                route.ringed[lane] = False
