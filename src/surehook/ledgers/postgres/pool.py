"""Sessions of one purpose, each lent to one task at a time; the one used last is lent first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from surehook.core.errors import LedgerUnavailable
from surehook.ledgers.postgres.session import Connect, PostgresSession


class Pool:
    """`size` sessions. A task waits for a free one for at most `patience_s`, the time one statement may take."""

    def __init__(self, connect: Connect, *, size: int, patience_s: float) -> None:
        self._patience_s = patience_s
        self._sessions = [PostgresSession(connect, patience_s=patience_s) for _ in range(size)]
        self._idle: asyncio.LifoQueue[PostgresSession] = asyncio.LifoQueue()
        for session in reversed(self._sessions):
            self._idle.put_nowait(session)

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[PostgresSession]:
        """Lend a session to the block."""
        try:
            session = self._idle.get_nowait()
        except asyncio.QueueEmpty:
            session = await self._wait()
        try:
            yield session
        finally:
            self._idle.put_nowait(session)

    async def _wait(self) -> PostgresSession:
        try:
            async with asyncio.timeout(self._patience_s):
                return await self._idle.get()
        except TimeoutError:
            raise LedgerUnavailable("all connections to the database are busy") from None

    async def close(self) -> None:
        await asyncio.gather(*[session.close() for session in self._sessions])
