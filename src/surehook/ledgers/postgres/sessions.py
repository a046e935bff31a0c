"""The ledger's sessions by purpose, and the order of opening and closing.

Each purpose has connections of its own, so that nothing on the hot path waits for other work:

    accepting, recording   the two group commits
    working                claims, parking, endings, what a node keeps in memory
    managing               changes by people, which may wait for rows that somebody else has locked
    beating                the heartbeat
    listing                lists
    counting               what takes longer the more there is: one count at a time, for which no list waits
    keeping                migrations, evictions
    pruning                retention, whose steps may take long
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from surehook.core.errors import CommitUnknown, LedgerUnavailable
from surehook.ledgers.common.indexes import ListIndexes
from surehook.ledgers.common.sessions import Sessions
from surehook.ledgers.common.statements import Changing, Reading
from surehook.ledgers.late import LateRows
from surehook.ledgers.postgres import steps
from surehook.ledgers.postgres.connecting import PATIENCE_S, Purpose, connect_to
from surehook.ledgers.postgres.errors import TransactionConflict
from surehook.ledgers.postgres.indexing import list_indexes
from surehook.ledgers.postgres.lookback import SECONDS
from surehook.ledgers.postgres.opening import open_database
from surehook.ledgers.postgres.pool import Pool
from surehook.ledgers.postgres.session import CLOSE_S, PostgresSession
from surehook.ledgers.postgres.stray_notes import note_ready

if TYPE_CHECKING:
    from surehook.ledgers.common.steps import Steps

P = ParamSpec("P")
R = TypeVar("R")

LISTS = "surehook.ledgers.postgres.core_sql"
# Our own statements never deadlock with each other; a stranger's may. Two deadlocks in a row are no accident.
TRIES = 3

Work = Callable[Concatenate[PostgresSession, P], Awaitable[R]]


class PostgresSessions(Sessions):
    """Sessions on one database.

    url      postgresql://…; asyncpg understands several hosts and `target_session_attrs`
    writers  connections for record; accept, which has one more writer, has one more
    workers  connections for claims and the like, and as many for management
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
        # Found about the server at the start, for operators to read.
        self.warnings: list[str] = []
        self._accepting = self._pool("hot", writers + 1)
        self._recording = self._pool("hot", writers)
        self._working = self._pool("hot", workers)
        self._managing = self._pool("hot", workers)
        self._beating = self._pool("beat", 1)
        self._listing = self._pool("list", listers)
        self._counting = self._pool("list", 1)
        self._keeping = self._pool("keep", 1)
        self._pruning = self._pool("keep", 1)
        self._late_rows = LateRows(self._note_late, clock)
        self._has_lists = False

    def _pool(self, purpose: Purpose, size: int) -> Pool:
        return Pool(connect_to(self.url, purpose), size=size, patience_s=PATIENCE_S[purpose])

    async def open(self, *, now: int) -> None:
        """Connect, check the server, and bring the schema to its head. Raises SettingsError if it cannot serve."""
        try:
            async with self._keeping.lend() as keeping, self._listing.lend() as listing:
                self.warnings = await open_database(keeping, listing, url=self.url, now=now)
        except BaseException:
            await self.close()
            raise

    async def _note_late(self, ids: list[bytes], due_by: int) -> None:
        await self._keep(note_ready, ids, due_by)

    async def close(self) -> None:
        """Close all connections at once, and drop what does not answer: each by itself would take its whole patience."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self._late_rows.close()
        pools = (
            self._accepting, self._recording, self._working, self._managing, self._beating, self._listing, self._counting,
            self._keeping, self._pruning,
        )  # fmt: skip
        await asyncio.gather(*[pool.close() for pool in pools])

    async def _with(self, pool: Pool, work: Work[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the work on a session of the pool, and again if it conflicted with another transaction."""
        for _ in range(TRIES - 1):
            try:
                async with pool.lend() as session:
                    return await work(session, *args, **kwargs)
            except TransactionConflict:
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
        """Write with work that recognizes its own rows, so that it can run again if the answer to its commit was lost."""
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
        """Write with work that cannot run again: a second claim would lease other rows.

        Raises CommitUnknown if the answer was lost; the caller knows what the work may have done.
        """
        return await self._write(work, *args, **kwargs)

    # -- the work that all SQL ledgers share ------------------------------------------------------------

    async def _show(self, work: Callable[P, Reading[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._read(steps.read, partial(work, *args, **kwargs))

    async def _load(self, work: Callable[P, Reading[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._write(steps.read, partial(work, *args, **kwargs))

    async def _load_page(self, work: Callable[P, Reading[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._write(steps.read_page, partial(work, *args, **kwargs))

    async def _refresh(self, work: Callable[P, Reading[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._write(steps.read, partial(work, *args, **kwargs))

    async def _change(self, work: Callable[P, Changing[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await self._with(self._managing, steps.change, partial(work, *args, **kwargs))
        except CommitUnknown as error:
            # It must not run again: it could take its own rows for somebody else's.
            detail = "the connection was lost while the change was committed: look whether it holds, then try again"
            raise LedgerUnavailable(detail) from error

    async def _import_lists(self) -> None:
        if not self._has_lists:
            try:
                await asyncio.to_thread(import_module, LISTS)
            except OSError as error:
                # No descriptors or memory are left: the next call may have them again.
                raise LedgerUnavailable(f"{LISTS} cannot be read now: {error}") from error
            self._has_lists = True

    async def _list(self, work: Callable[P, Steps[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        from surehook.ledgers.postgres.core_sql import look

        return await self._read(look, partial(work, *args, **kwargs))

    async def _list_indexes(self) -> ListIndexes:
        return await self._read(list_indexes)
