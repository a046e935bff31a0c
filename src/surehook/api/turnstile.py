"""Admission of calls that are not publishes: a few at a time, with rests of the event loop in between.

Crowds of them arrive at one moment, each on its own connection. Without this all would begin in one turn of the event loop,
a third of a millisecond each, and publishes that came with them would wait for the last. Callers, told apart by their keys,
take turns. A waiting call holds a connection that serves nobody else, so the more wait, the more begin at a time.
"""

from __future__ import annotations

import asyncio
from collections import deque

REST_S = 0.001
TURNS = 4  # of the loop before a rest, in which a call that has begun does most of its work
AT_ONCE = 256  # of so many that wait one begins at a time, and one more


class Turnstile:
    """`passed` before a call begins."""

    def __init__(self) -> None:
        self._lines: dict[bytes | None, deque[asyncio.Future[None]]] = {}  # by caller, the next one first
        self._count = 0  # of those that wait
        self._rests = False

    async def passed(self, caller: bytes | None) -> None:
        """Return at once where no call has begun of late, else in turn. None: whoever has no key, all together."""
        if not self._rests:
            self._rest()
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(caller, deque()).append(turn)
        self._count += 1
        await turn

    def _rest(self, turns: int = TURNS) -> None:
        self._rests = True
        loop = asyncio.get_running_loop()
        if turns:
            loop.call_soon(self._rest, turns - 1)
        else:
            loop.call_later(REST_S, self._next)

    def _next(self) -> None:
        self._rests = False
        places = 1 + self._count // AT_ONCE
        while self._lines and places:
            caller = next(iter(self._lines))
            line = self._lines.pop(caller)
            turn = line.popleft()
            self._count -= 1
            if line:
                self._lines[caller] = line
            if not turn.done():  # nobody who has hung up
                turn.set_result(None)
                places -= 1
                if not self._rests:
                    self._rest()
