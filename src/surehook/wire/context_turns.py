"""Whose TLS context is made next: one at a time, tenants in turns, and a rest after each.

Making one holds the event loop, for ten milliseconds where an endpoint trusts a bundle of certificates. A tenant with a
thousand such endpoints needs more of them than are kept, for each event anew: so all of them together have a quarter of the
loop's time, and another tenant's waits for one turn of each. Whose call's time runs out meanwhile leaves the line, and is
tried again as after other trouble of ours.
"""

from __future__ import annotations

import asyncio
from collections import deque


class ContextTurns:
    """Belongs to one loop."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[asyncio.Future[None]]] = {}  # by tenant, whose turn is next in front
        self._is_busy = False

    async def turn(self, tenant: str) -> None:
        """Wait for a turn, which `rest` ends."""
        if not self._is_busy:
            self._is_busy = True
            return
        waiting = asyncio.get_running_loop().create_future()
        self._lines.setdefault(tenant, deque()).append(waiting)
        try:
            await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled():  # its turn came in the same step
                self._next()
            raise

    def rest(self, seconds: float) -> None:
        """The turn is over, and the next one comes after so long."""
        asyncio.get_running_loop().call_later(seconds, self._next)

    def _next(self) -> None:
        while self._lines:
            tenant, line = next(iter(self._lines.items()))
            del self._lines[tenant]
            waiting = line.popleft()
            if line:
                self._lines[tenant] = line  # behind the others
            if not waiting.done():
                waiting.set_result(None)
                return
        self._is_busy = False
