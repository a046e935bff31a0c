"""Turns of costly work: one slice of one caller's work at a time, and time for everybody else in between.

Work that is known beforehand to hold the loop for longer than a small request does (a large body, a payload that takes long to
validate, the compilation of a schema, a scrape) is done here, in steps where it has any. After a slice the loop is free for
as long as the slice took, and for some turns: however much of it callers ask for, half of the time is others'. Small things
never wait.

Callers, told by their keys or their tenants, take turns; of one caller's works the one that came first goes on, where a
small one counts as come earlier than a large one: so it passes the large ones, and none is passed for ever. What broken
work has cost counts like that of any other. The line is bounded: who fills it is refused, and so is who waits long to begin.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from typing import TypeVar

from surehook.core.errors import Overloaded, TenantOverloaded
from surehook.core.steps import COST_S, SLICE_COST, Steps, at_once

# Work that costs no more than many small requests do, a third of a millisecond, waits for nobody. Reading a body costs READ times
# its bytes, whatever it holds: 16 KiB are small (core/steps.py).
SMALL_COST, READ = 64 * 1024, 4
# Turns of the loop between two slices, fewer after a short one: a waiting publish needs about six.
PAUSE_TURNS, TURN_S = 8, 0.00025
# After a slice longer than LONG_S, which cannot be cut, its caller rests so that at most one publish in ONE_IN meets the excess,
# and longer if several callers rest. If nobody has published for OTHERS_S, it does not rest.
LONG_S, ONE_IN, OTHERS_S = 0.010, 20, 1.0
MOST_S = 0.1  # the longest possible slice: in a longer one the process stood still
LATER = 20  # work lets shorter work pass that comes up to this many times their difference later
# Pieces of work that may wait, each with a connection and up to 16 KiB outside the budget of bodies, and the longest wait for one
# to begin. A caller may have three times as many as it leaves free.
WAITING_MOST, BEGIN_S = 512, 15.0

T = TypeVar("T")
_Waiting = tuple[float, int, asyncio.Future[None]]  # its place, a unique number, and the future of who waits


class TurnScheduler:
    """One for a process. `now`: seconds on a clock that never steps."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lines: dict[bytes, list[_Waiting]] = {}  # of callers that wait, the next one first
        self._resting: set[bytes] = set()  # callers after a long slice
        self._waiting = 0
        self._is_busy = False
        self._count = 0
        self._passed_at = -OTHERS_S

    async def run(self, caller: bytes, work: Steps[T], *, cost: int = SLICE_COST, begins: bool = True) -> T:
        """Do work in steps in its turn and return its result; at once if its estimated `cost` is small. Raises Overloaded or
        TenantOverloaded if too much waits, unless `begins` is False: part of the work is done already."""
        if cost <= SMALL_COST:
            return at_once(work)
        came, done = self._now(), 0
        while True:
            await self._enter(caller, came + LATER * COST_S * (cost + done), begins=begins and not done)
            begun, end = self._now(), done + SLICE_COST
            try:
                while done < end:
                    done += next(work)
            except StopIteration as found:
                result: T = found.value
                return result
            finally:
                self._leave(caller, self._now() - begun)

    async def once(self, caller: bytes, work: Callable[[], T], *, cost: int = SLICE_COST) -> T:
        """Do work that has a single step in its turn and return its result."""
        if cost <= SMALL_COST:
            return work()

        def step() -> Steps[T]:
            return work()
            yield  # which makes it a generator

        return await self.run(caller, step(), cost=cost)

    def passed(self) -> None:
        """A publish came that waits for no turn."""
        self._passed_at = self._now()

    async def _enter(self, caller: bytes, place: float, *, begins: bool) -> None:
        if not self._is_busy and caller not in self._resting:
            self._is_busy = True
            return
        line = self._lines.get(caller)
        if begins:
            self._admit(0 if line is None else len(line))
        if line is None:
            line = self._lines[caller] = []
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._count += 1
        heapq.heappush(line, (place, self._count, turn))
        patience = loop.call_later(BEGIN_S, _give_up, turn) if begins else None
        self._waiting += 1
        try:
            await turn
        except asyncio.CancelledError:
            # It was told at the same moment.
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._give()
            raise
        finally:
            self._waiting -= 1
            if patience is not None:
                patience.cancel()

    def _admit(self, own: int) -> None:
        free = WAITING_MOST - self._waiting - 1
        if own + 1 > 3 * max(0, free):
            if own:
                raise TenantOverloaded("too much of this caller's costly work waits for its turn")
            raise Overloaded("too much costly work waits for its turn")

    def _leave(self, caller: bytes, took: float) -> None:
        """End a slice: the next one begins when others have had their time."""
        took = min(took, MOST_S)
        loop = asyncio.get_running_loop()
        if took > LONG_S and self._now() - self._passed_at < OTHERS_S:
            self._resting.add(caller)
            rest = len(self._resting) * (ONE_IN * (took - LONG_S) - took)
            loop.call_later(max(took, rest), self._rested, caller)
        turns = min(PAUSE_TURNS, 1 + int(took / TURN_S))
        loop.call_later(took, self._pause, turns)

    def _rested(self, caller: bytes) -> None:
        self._resting.discard(caller)
        if not self._is_busy:
            self._give()

    def _pause(self, turns: int) -> None:
        if turns:
            asyncio.get_running_loop().call_soon(self._pause, turns - 1)
        else:
            self._give()

    def _give(self) -> None:
        """Let the next work begin, and put its caller behind the others."""
        self._is_busy = False
        for caller in [caller for caller in self._lines if caller not in self._resting]:
            line = self._lines.pop(caller)
            turn = None
            while line and (turn is None or turn.done()):  # nobody waits for that of a caller who hung up
                turn = heapq.heappop(line)[2]
            if line:
                self._lines[caller] = line
            if turn is not None and not turn.done():
                self._is_busy = True
                turn.set_result(None)
                return


def _give_up(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_exception(Overloaded(f"this would have waited for its turn for more than {BEGIN_S:.0f} s"))
