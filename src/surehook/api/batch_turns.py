"""Turns of large batches while they are decoded: one slice of one batch at a time, and time for everybody else in between.

Callers, told by their keys, take turns; of one caller's batches that one goes on of which least was done, so that a
small one passes the large ones. What a broken batch has cost counts like that of any other.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque

PAUSE_TURNS = 8  # of the event loop, after a slice: a publish that waits passes half a dozen of them

_Waiting = tuple[int, int, asyncio.Future[None]]  # what was done, when it came, and whom to tell


class BatchTurns:
    """`enter` before each slice, `leave` after it."""

    def __init__(self) -> None:
        self._callers: deque[bytes] = deque()  # those that wait, the next one first
        self._lines: dict[bytes, list[_Waiting]] = {}
        self._is_busy = False
        self._count = 0

    async def enter(self, caller: bytes, done: int) -> None:
        """Wait for a turn; `done` is what the batch has cost so far."""
        if not self._is_busy:
            self._is_busy = True
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line = self._lines.get(caller)
        if line is None:
            line = self._lines[caller] = []
            self._callers.append(caller)
        self._count += 1
        heapq.heappush(line, (done, self._count, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was told at the same moment
                self.leave()
            raise

    def leave(self) -> None:
        """The slice is over: whoever is next begins when others have had their time."""
        self._pause(PAUSE_TURNS)

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
