"""Deliveries that are held but not yet due: one timer for the earliest of them.

Claims take rows half a second before they are due, so that a retry leaves at its millisecond and not at the
next poll. A wall clock that jumps is met twice: the timer measures the wait on the loop's own clock, and
when it fires the wall clock is asked again, so that nothing ever leaves early. A clock that jumped ahead and back has brought
work here whose time is far: it goes back to the ledger, since it would keep others out of memory until then.
"""

from __future__ import annotations

import asyncio
import heapq

from surehook.core.model import Delivery
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.endpoint_state import EndpointState
from surehook.delivery.loops import Loops
from surehook.delivery.pump import Pump
from surehook.delivery.record import Record
from surehook.ports.clock import Clock

LONGEST_S = 1.0  # asked again at least this often, so that a clock that was stepped is noticed
FAR_AHEADS = 10  # what is due later than so many times how far claims look ahead was claimed by another clock


class Timers:
    """A heap by due time. What is due is queued; what was claimed by another clock, and is far, goes back."""

    def __init__(
        self, *, clock: Clock, loops: Loops, dispatch: Dispatch, pump: Pump, record: Record, ahead_ms: int
    ) -> None:
        """`ahead_ms`: claims take what is due within so long."""
        self._clock = clock
        self._loops = loops
        self._dispatch = dispatch
        self._pump = pump
        self._record = record
        self._far_ms = FAR_AHEADS * ahead_ms
        self._latest = 0  # nothing here is due after this instant
        self._heap: list[tuple[int, bytes, EndpointState, Delivery]] = []
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, route: EndpointState, delivery: Delivery) -> None:
        heapq.heappush(self._heap, (delivery.due_at, delivery.id, route, delivery))
        self._latest = max(self._latest, delivery.due_at)
        if self._heap[0][3] is delivery:
            self._arm()

    def held_ids(self) -> list[bytes]:
        """Everything that waits here."""
        return [key for _, key, _, _ in self._heap]

    def drain(self) -> list[tuple[EndpointState, Delivery]]:
        """Take everything out (shutdown, eviction)."""
        taken = [(route, delivery) for _, _, route, delivery in self._heap]
        self._heap.clear()
        self._arm()
        return taken

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._heap:
            wait_s = min(max(0.0, (self._heap[0][0] - self._clock.now()) / 1000), LONGEST_S)
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._fire)

    def _fire(self) -> None:
        try:
            self._ring()
        except Exception as error:  # the loop would log it, and no timer be armed again
            self._loops.defect("timers", error)

    def _ring(self) -> None:
        self._timer = None
        now = self._clock.now()
        while self._heap and self._heap[0][0] <= now:
            _, _, route, delivery = heapq.heappop(self._heap)
            self._dispatch.push(route, delivery)
            self._pump.pump()
        if self._latest > now + self._far_ms:
            self._give_back(now + self._far_ms)
        self._arm()

    def _give_back(self, far: int) -> None:
        """Let go of what is due after an instant."""
        given = [one for one in self._heap if one[0] > far]
        self._heap = [one for one in self._heap if one[0] <= far]
        heapq.heapify(self._heap)
        self._latest = far
        for _, _, route, delivery in given:
            self._record.put_wrong_lane(route, delivery)
