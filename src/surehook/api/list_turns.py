"""Whose list is read next: a few at a time, callers in turns.

A ledger has one or two connections for lists, and a list takes from a millisecond to a tenth of a second. In the order in which
they come, nine hundred of one caller would have everybody else wait for seconds, also when he has hung up: an end of what he
sends is no sign that he does not wait for an answer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from surehook.core.errors import TenantOverloaded

AT_ONCE = 2
WAITING_MOST = 128  # of one caller


class ListTurns:
    """Callers are told apart by their keys, and by the tenants that they ask for: a platform may have one key for all."""

    def __init__(self) -> None:
        self._lines: dict[bytes, deque[asyncio.Future[None]]] = {}  # by caller, whose turn is next in front
        self._free = AT_ONCE

    @asynccontextmanager
    async def turn(self, caller: bytes) -> AsyncIterator[None]:
        """Wait for a turn, which lasts as long as the block. Raises TenantOverloaded where too many of this caller wait."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(caller)
        try:
            yield
        finally:
            self._next()

    async def _wait(self, caller: bytes) -> None:
        line = self._lines.setdefault(caller, deque())
        if len(line) >= WAITING_MOST:
            raise TenantOverloaded(f"{WAITING_MOST} lists of this caller wait already")
        waiting = asyncio.get_running_loop().create_future()
        line.append(waiting)
        try:
            await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled():  # its turn came in the same step
                self._next()
            raise

    def _next(self) -> None:
        while self._lines:
            caller, line = next(iter(self._lines.items()))
            del self._lines[caller]
            waiting = line.popleft()
            if line:
                self._lines[caller] = line  # behind the others
            if not waiting.done():
                waiting.set_result(None)
                return
        self._free += 1
