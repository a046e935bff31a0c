"""Turns of costly work: one slice of one caller's work at a time, and time for everybody else in between.

Whatever is known beforehand to keep the loop for longer than a small request does (a large body, a payload that a schema judges
long, a schema that is compiled, a scrape) is done here, in steps where it has any. After a slice the loop is free for
as long as the slice took, and for some turns: however much of it callers ask for, half of the time is others'. Small things
never wait.

Callers, told by their keys, take turns; of one caller's works that one goes on that looked small and of which little was
done, so that a small one passes the large ones. What broken work has cost counts like that of any other.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from surehook.core.steps import SLICE_COST, Steps, at_once

# What costs no more than many small requests do, a third of a millisecond, waits for nobody. Reading a body costs so many times
# its bytes, whatever it holds: 16 KiB are small (core/steps.py).
SMALL_COST, READ = 64 * 1024, 4
# Turns of the loop after a slice: a publish that waits passes half a dozen of them. After a shorter slice fewer.
PAUSE_TURNS, TURN_S = 8, 0.00025
# After a longer slice, which cannot be cut, the loop is free until at most one publish in so many meets what is above this. Where
# nobody has published for a while, as after any other.
LONG_S, ONE_IN, OTHERS_S = 0.010, 20, 1.0

T = TypeVar("T")
_Waiting = tuple[int, int, asyncio.Future[None]]  # what it costs, when it came, and whom to tell


class Turns:
    """One for a process. `now`: seconds on a clock that never steps."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._callers: deque[bytes] = deque()  # those that wait, the next one first
        self._lines: dict[bytes, list[_Waiting]] = {}
        self._is_busy = False
        self._count = 0
        self._passed_at = -OTHERS_S

    async def run(self, caller: bytes, work: Steps[T], *, cost: int = SLICE_COST) -> T:
        """What comes of work that is done in steps and looks as if it cost so much; at once where that is little."""
        if cost <= SMALL_COST:
            return at_once(work)
        done = 0
        while True:
            await self._enter(caller, cost + done)
            begun, end = self._now(), done + SLICE_COST
            try:
                while done < end:
                    done += next(work)
            except StopIteration as found:
                result: T = found.value
                return result
            finally:
                self._leave(self._now() - begun)

    async def once(self, caller: bytes, work: Callable[[], T], *, cost: int = SLICE_COST) -> T:
        """What comes of work that is one step."""
        if cost <= SMALL_COST:
            return work()

        def step() -> Steps[T]:
            return work()
            yield  # which makes it a generator

        return await self.run(caller, step(), cost=cost)

    def passed(self) -> None:
        """A publish came that waits for no turn."""
        self._passed_at = self._now()

    async def _enter(self, caller: bytes, cost: int) -> None:
        if not self._is_busy:
            self._is_busy = True
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line = self._lines.get(caller)
        if line is None:
            line = self._lines[caller] = []
            self._callers.append(caller)
        self._count += 1
        heapq.heappush(line, (cost, self._count, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was told at the same moment
                self._leave(0.0)
            raise

    def _leave(self, took: float) -> None:
        """The slice is over: whoever is next begins when others have had their time."""
        rest = took
        if took > LONG_S and self._now() - self._passed_at < OTHERS_S:
            rest = max(took, ONE_IN * (took - LONG_S) - took)
        turns = min(PAUSE_TURNS, 1 + int(took / TURN_S))
        asyncio.get_running_loop().call_later(rest, self._pause, turns)

    def _pause(self, turns: int) -> None:
        if turns:
            asyncio.get_running_loop().call_soon(self._pause, turns - 1)
        else:
            self._give()

    def _give(self) -> None:
        while self._callers:
            caller = self._callers.popleft()
            line = self._lines[caller]
            turn = heapq.heappop(line)[2]
            if line:
                self._callers.append(caller)
            else:
                del self._lines[caller]
            if not turn.done():  # nobody waits for that of a caller who hung up
                turn.set_result(None)
                return
        self._is_busy = False
