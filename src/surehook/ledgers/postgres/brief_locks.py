"""Work under exclusive locks that makes others wait for a moment only.

Whoever waits for an exclusive lock makes everybody else wait behind it. So such work waits for at most `LOCK_WAIT_MS`, gives
up, pauses and tries again; statements of others go on in between. While somebody holds a table for long (a dump, a forgotten
session), the work is not done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from surehook.core.errors import LedgerUnavailable
from surehook.ledgers.postgres.session import PostgresSession

LOCK_WAIT_MS = 100
LOCK_NOT_AVAILABLE = "55P03"
# Pause between attempts: several times as long as others may have waited.
LOCK_REST_S = 0.5


async def in_brief_locks(
    session: PostgresSession, work: Callable[[], Awaitable[None]], *, tries: int
) -> bool:
    """Run the work in one transaction; False if its locks could not be had in so many attempts."""
    for attempt in range(tries):
        if attempt:
            await asyncio.sleep(LOCK_REST_S)
        try:
            async with session.writing():
                await session.say(f"set local lock_timeout = {LOCK_WAIT_MS}")
                await work()
            return True
        except LedgerUnavailable as error:
            if getattr(error.__cause__, "sqlstate", None) != LOCK_NOT_AVAILABLE:
                raise
    return False
