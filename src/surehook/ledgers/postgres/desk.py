"""What all parts of the ledger stand on: sessions by purpose, and the order of opening.

Each purpose has connections of its own, so that nothing on the way of an event waits for something beside it:

    accepting, recording   the two group commits
    working                claims, parking, endings, management
    beating                the heartbeat
    listing                lists
    counting               what takes the longer the more there is: one count at a time, and no list waits for it
    keeping                migrations, burials
    pruning                retention, whose steps may take long
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, Concatenate, ParamSpec, TypeVar

from surehook.core.errors import CommitUnknown, LedgerUnavailable
from surehook.ledgers.late import Telling
from surehook.ledgers.postgres.connecting import PATIENCE_S, Purpose, connect_to
from surehook.ledgers.postgres.errors import Again
from surehook.ledgers.postgres.lookback import SECONDS
from surehook.ledgers.postgres.opening import open_book
from surehook.ledgers.postgres.pool import Pool
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.telling import tell

P = ParamSpec("P")
R = TypeVar("R")

# Deadlocks do not happen between our own statements; a stranger's may. Two in a row are no accident.
TRIES = 3

Work = Callable[Concatenate[Session, P], Awaitable[R]]


class Desk:
    """Sessions on one database.

    url      postgresql://…; several hosts and `target_session_attrs` are asyncpg's to understand
    writers  connections for record; for accept, which has one more writer, one more
    workers  connections for everything else that writes
    listers  connections for lists
    clock    counts seconds: between looks back, and how long commits take
    """

    def __init__(
        self,
        url: str,
        *,
        writers: int = 2,
        workers: int = 2,
        listers: int = 2,
        clock: Callable[[], float] = SECONDS,
    ) -> None:
        self.url = url
        self.warnings: list[str] = []  # what a start found about the server; people should read it
        self._accepting = self._pool("hot", writers + 1)
        self._recording = self._pool("hot", writers)
        self._working = self._pool("hot", workers)
        self._beating = self._pool("beat", 1)
        self._listing = self._pool("list", listers)
        self._counting = self._pool("list", 1)
        self._keeping = self._pool("keep", 1)
        self._pruning = self._pool("keep", 1)
        self._telling = Telling(self._tell, clock)
        self._lists_sql: Any = None

    def _pool(self, purpose: Purpose, size: int) -> Pool:
        return Pool(connect_to(self.url, purpose), size=size, patience_s=PATIENCE_S[purpose])

    async def open(self, *, now: int) -> None:
        """Connect, make sure of the server, bring the schema to its head. Raises SettingsError where it cannot serve."""
        try:
            async with self._keeping.lend() as keeping, self._listing.lend() as listing:
                self.warnings = await open_book(keeping, listing, url=self.url, now=now)
        except BaseException:
            await self.close()
            raise

    async def _tell(self, ids: list[bytes], due_by: int) -> None:
        await self._keep(tell, ids, due_by)

    async def close(self) -> None:
        await self._telling.close()
        for pool in (
            self._accepting, self._recording, self._working, self._beating, self._listing, self._counting,
            self._keeping, self._pruning,
        ):  # fmt: skip
            await pool.close()

    async def _with(self, pool: Pool, work: Work[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the work on a session of the pool; where it met another's transaction, once more."""
        for _ in range(TRIES - 1):
            try:
                async with pool.lend() as session:
                    return await work(session, *args, **kwargs)
            except Again:
                continue
        async with pool.lend() as session:
            return await work(session, *args, **kwargs)

    async def _write(self, work: Work[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._with(self._working, work, *args, **kwargs)

    async def _read(self, work: Work[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._with(self._listing, work, *args, **kwargs)

    async def _count(self, work: Work[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._with(self._counting, work, *args, **kwargs)

    async def _keep(self, work: Work[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._with(self._keeping, work, *args, **kwargs)

    async def _surely(self, work: Work[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Write with work that knows its own traces, so that it is run again where a commit's answer was lost."""
        return await self._until_known(self._working, work, *args, **kwargs)

    async def _until_known(self, pool: Pool, work: Work[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        for _ in range(TRIES - 1):
            try:
                return await self._with(pool, work, *args, **kwargs)
            except CommitUnknown:
                continue
        try:
            return await self._with(pool, work, *args, **kwargs)
        except CommitUnknown as error:
            raise LedgerUnavailable(f"{TRIES} commits in a row were lost: {error}") from error

    async def _once(self, work: Work[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Write with work that cannot be run again: a second claim would lease other rows.

        Raises CommitUnknown where the answer was lost: the caller knows what it may have done.
        """
        return await self._write(work, *args, **kwargs)

    async def _core_sql(self) -> Any:
        """What needs SQLAlchemy, imported when first asked for, and not on the event loop's thread."""
        if self._lists_sql is None:  # `sys.modules` has a module before it is whole
            name = "surehook.ledgers.postgres.core_sql"
            try:
                self._lists_sql = await asyncio.to_thread(import_module, name)
            except OSError as error:  # no descriptors or memory left: the next call may have them again
                raise LedgerUnavailable(f"{name} cannot be read now: {error}") from error
        return self._lists_sql
