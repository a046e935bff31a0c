"""Many deadlines on one timer.

A timer of the loop for each request costs more than reading its answer, and nearly all of them are
cancelled. Here things that have a deadline are looked at in ticks. What is registered is never removed:
it is looked at when its tick comes, and if its deadline has moved on meanwhile (a connection that carried
another request), it is registered again. So a busy connection touches the wheel once per timeout, not once
per request.

A tick is 5 ms: a deadline is noticed at most that late, plus one turn of the loop.

Where it is noticed much later, the process stood still (stopped, swapped out, its virtual machine moved), and answers that
came in time wait unread in the kernel. That is our own trouble: everything gets a grace to be read first.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections.abc import Callable
from typing import Protocol

TICK_S = 0.005
SLACK_S = 1e-6  # clocks are floats: what is this near is now, or a timer of a virtual clock could stand still
REARM_S = 0.001  # a timer that rang early is set again no nearer than this
STOOD_S = 1.0  # a timer that rings so much late did so because nothing ran
GRACE_S = 1.0  # from when that is noticed: to read what waits, and to send on what had not left yet
NEVER = math.inf


class Timed(Protocol):
    """`due` is when `expire` wants to be called, on the wheel's clock; `alarm` belongs to the wheel, NEVER at first."""

    due: float
    alarm: float

    def expire(self, now: float) -> None: ...


class Wheel:
    """`boot` is the clock that deadlines are measured on; it may count time that the loop's own clock does not."""

    def __init__(self, boot: Callable[[], float]) -> None:
        self._boot = boot
        self._ticks: list[int] = []
        self._slots: dict[int, list[Timed]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_tick = 0
        self._rings_at = NEVER  # when the timer should ring
        self._stood_until = -NEVER  # when it was last noticed that the process stood still

    def watch(self, thing: Timed) -> None:
        """Make sure that `thing` is looked at once its `due` has passed. Cheap if it is watched already."""
        if thing.due >= thing.alarm or thing.due == NEVER:
            return
        tick = math.ceil(thing.due / TICK_S)
        thing.alarm = tick * TICK_S
        slot = self._slots.get(tick)
        if slot is not None:
            slot.append(thing)
            return
        self._slots[tick] = [thing]
        heapq.heappush(self._ticks, tick)
        if self._timer is None or tick < self._timer_tick:
            self._arm(0.0)

    def excuses(self, due: float, now: float) -> bool:
        """True if nothing could have run at this instant, because the process stood still. `now` is by the wheel's clock."""
        return due <= self._stood_until or (self._timer is not None and now - self._rings_at > STOOD_S)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._ticks.clear()
        self._slots.clear()

    def _arm(self, least_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_tick = self._ticks[0]
        now = self._boot()
        wait = max(least_s, self._timer_tick * TICK_S - now, self._stood_until + GRACE_S - now)
        self._rings_at = now + wait
        self._timer = asyncio.get_running_loop().call_later(wait, self._ring)

    def _ring(self) -> None:
        self._timer = None
        now = self._boot() + SLACK_S
        if now - self._rings_at > STOOD_S:
            self._stood_until = now
            self._arm(0.0)
            return
        while self._ticks and self._ticks[0] * TICK_S <= now:
            tick = heapq.heappop(self._ticks)
            at = tick * TICK_S
            for thing in self._slots.pop(tick):
                if thing.alarm != at:
                    continue  # an earlier alarm was set since; that one counts
                thing.alarm = NEVER
                if thing.due <= now:
                    thing.expire(now)
                else:
                    self.watch(thing)
        if self._ticks and self._timer is None:
            self._arm(REARM_S)
