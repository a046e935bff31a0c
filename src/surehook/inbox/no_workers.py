"""A warning for an inbox without workers: its events would wait for ever, and senders were told that all is well.

A process that has a door and no workers cannot know whether another has some. The table knows: workers take what has been due for
longest first, so if that is the same run for half a minute, and has been due for a minute, nobody has taken anything. One
row is read by the index of what is due, twice a minute at most, and only after something arrived; a process with workers does
not look.

A loop looks again by itself for as long as anything waits. Where requests have threads, the next one to arrive looks: a timer of
ours would outlive a server's fork, or a test's database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from surehook.inbox.log_limits import OncePer
from surehook.inbox.safe_log import log
from surehook.ports.inbox import Transaction

LOOK_S = 30.0
STAYS_S = 30.0  # the oldest, as seen from here
WAITS_S = 60.0
TELL_S = 60.0
ENDS_S = 5.0  # a look is one row by its index: one that takes longer hangs
HANGS_S = 30.0  # and no other look would begin beside it


class NoWorkersWatch:
    """Watches the oldest due run. `now` gives Unix milliseconds, `boot` seconds; `works` tells if this process has workers."""

    def __init__(self, now: Callable[[], int], boot: Callable[[], float], works: Callable[[], bool]) -> None:
        self._now, self._boot, self._works = now, boot, works
        self._looked = -LOOK_S
        self._oldest, self._since = b"", 0.0  # and since when it is that
        self._telling = OncePer(boot, TELL_S)
        self._next: tuple[asyncio.AbstractEventLoop, asyncio.TimerHandle] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._closed = False

    def is_due(self) -> bool:
        """Tell whether to look now, as something has arrived."""
        now = self._boot()
        if 0 <= now - self._looked < LOOK_S or self._works():
            return False
        self._looked = now
        return True

    def look(self, transaction: Transaction) -> bool:
        """Warn if nobody takes the oldest run; whether anything waits."""
        now = self._now()
        found = transaction.oldest_due(now=now)
        boot = self._boot()  # not before: while a slow answer came, another run may have been the oldest
        if found is None:
            self._oldest = b""
            return False
        if found.run != self._oldest:
            self._oldest, self._since = found.run, boot
        waits_s, stays_s = (now - found.due_at) / 1000, boot - self._since
        if waits_s >= WAITS_S and stays_s >= STAYS_S and self._telling.may("unworked"):
            log.warning(
                "events are stored, and no worker processes them: the oldest, of %s, has been due for %.0f s. Give the "
                "application inbox.lifespan, call inbox.start(), or run "
                "`surehook inbox work MODULE:INBOX` (Django: manage.py surehook_work)",
                found.source,
                waits_s,
            )
        return True

    def arrived(self, look: Callable[[], Awaitable[bool]]) -> None:
        """Look soon, from a loop, and again by itself for as long as anything waits."""
        if self._closed or self._works():
            return
        loop = asyncio.get_running_loop()
        if self._next is None or self._next[0] is not loop:
            self._next = (loop, loop.call_later(LOOK_S, self._begin, look))

    def _begin(self, look: Callable[[], Awaitable[bool]]) -> None:
        self._next = None
        if self._is_looking():
            # One at a time, as `closed` waits for one; this one may not have seen what has just arrived.
            self.arrived(look)
            return
        self._looking = asyncio.ensure_future(self._look(look))

    def _is_looking(self) -> bool:
        """Tell whether a look is under way on this loop."""
        looking = self._looking
        return looking is not None and not looking.done() and looking.get_loop() is asyncio.get_running_loop()

    async def _look(self, look: Callable[[], Awaitable[bool]]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(HANGS_S):
                if not await look():
                    return
        self.arrived(look)

    def close(self) -> None:
        """Stop looking."""
        self._closed = True
        if self._next is not None:
            self._next[1].cancel()
            self._next = None

    async def closed(self) -> None:
        """Stop looking, and wait for the look under way: it holds a connection that nobody would close after it."""
        self.close()
        if self._looking is not None and self._is_looking():
            await asyncio.wait([self._looking], timeout=ENDS_S)
            self._looking.cancel()
