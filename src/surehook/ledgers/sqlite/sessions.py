"""The ledger's sessions, the workers that run on them, and the order of opening and closing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from surehook.core.errors import LedgerBroken, LedgerUnavailable
from surehook.ledgers.common.indexes import IN_ONE_FILE, ListIndexes
from surehook.ledgers.common.sessions import Sessions
from surehook.ledgers.common.statements import Changing, Reading
from surehook.ledgers.sqlite import steps
from surehook.ledgers.sqlite.driver import Driver
from surehook.ledgers.sqlite.file import FLOOR_BYTES, DatabaseFile, NoFile
from surehook.ledgers.sqlite.opening import open_reader, open_writer
from surehook.ledgers.sqlite.session import SqliteSession
from surehook.ledgers.sqlite.workers import Inline, Rank, SqliteWorker, Thread

if TYPE_CHECKING:
    from surehook.ledgers.common.steps import Steps

P = ParamSpec("P")
R = TypeVar("R")
Work = Callable[Concatenate[SqliteSession, P], R]
LISTS = "surehook.ledgers.sqlite.core_sql"


class SqliteSessions(Sessions):
    """Four sessions on one file, each on a thread of its own: one writes, one reads single rows and what the engine looks for,
    one lists, and one counts. A crowd of lists so delays no retry.

    path              the database file
    inline            run everything on the calling thread and one connection, so that a simulated loop orders it
    driver            the binding; by default the standard library's
    disk_floor_bytes  free bytes below which no new work is accepted (LedgerFull)
    beside            table of an outbox: a file that has it may have an application's other tables as well
    """

    def __init__(
        self,
        path: str,
        *,
        inline: bool = False,
        driver: Driver | None = None,
        disk_floor_bytes: int = FLOOR_BYTES,
        beside: str | None = None,
    ) -> None:
        self.path = path
        self._outbox = beside
        self._driver = driver if driver is not None else Driver()
        self._inline = inline
        self._file = DatabaseFile(path, floor_bytes=disk_floor_bytes) if self._driver.on_disk else NoFile()
        self._writing = SqliteSession(self._driver, path)
        self._reading = self._writing if inline else SqliteSession(self._driver, path)
        self._listing = self._writing if inline else SqliteSession(self._driver, path)
        self._counting = self._writing if inline else SqliteSession(self._driver, path)
        self._writer: SqliteWorker = Inline()
        self._reader: SqliteWorker = Inline()
        self._lister: SqliteWorker = Inline()
        self._counter: SqliteWorker = Inline()
        self._has_lists = False

    # -- opening and closing ----------------------------------------------------------------------------

    async def open(self, *, now: int) -> None:
        """Lock the file, connect, and bring the schema to its head. Raises SettingsError if the file cannot serve."""
        if not self._inline:
            self._writer = Thread("ledger-writer", self._writing.joint)
            self._reader = Thread("ledger-reader")
            self._lister = Thread("ledger-lister")
            self._counter = Thread("ledger-counter")
        try:
            await self._writer.call(self._open_writing)
            if not self._inline:
                await self._reader.call(partial(open_reader, self._reading))
                await self._lister.call(partial(open_reader, self._listing))
                await self._counter.call(partial(open_reader, self._counting))
        except BaseException:
            await self.close()
            raise

    def _open_writing(self) -> None:
        self._file.take()
        open_writer(self._writing, self._outbox)

    async def close(self) -> None:
        """Close the connections and unlock the file. The writing one closes last: it moves the log into the file."""
        if self._reading is not self._writing:
            await self._reader.last(self._reading.close)
            await self._lister.last(self._listing.close)
            await self._counter.last(self._counting.close)
        await self._writer.last(self._writing.close)
        self._reader.stop()
        self._lister.stop()
        self._counter.stop()
        self._writer.stop()
        self._writer = self._reader = self._lister = self._counter = Inline()
        self._file.leave()

    # -- the ledger's own work --------------------------------------------------------------------------

    async def _write(self, work: Work[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._writer.call(partial(work, self._writing, *args, **kwargs))

    async def _later(self, work: Work[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Write what can wait a little: behind all other work, in a transaction of its own."""
        return await self._writer.call(partial(work, self._writing, *args, **kwargs), rank=Rank.BULK)

    async def _join(self, work: Work[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Write in one transaction with adjacent work. The work must leave nothing behind but rows."""
        return await self._writer.call(partial(work, self._writing, *args, **kwargs), joins=True)

    async def _add(self, work: Work[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Write new work if the disk has room for it; otherwise like `_join`."""
        work_here = partial(work, self._writing, *args, **kwargs)
        return await self._writer.call(partial(self._with_room, work_here), joins=True)

    async def _add_quickly(self, work: Work[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Write a little new work before all other work; otherwise like `_add`."""
        work_here = partial(work, self._writing, *args, **kwargs)
        return await self._writer.call(partial(self._with_room, work_here), joins=True, rank=Rank.QUICK)

    async def _add_later(self, work: Work[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Write new work if the disk has room for it; otherwise like `_later`."""
        work_here = partial(work, self._writing, *args, **kwargs)
        return await self._writer.call(partial(self._with_room, work_here), rank=Rank.BULK)

    async def _read(self, work: Work[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._reader.call(partial(work, self._reading, *args, **kwargs))

    async def _count(self, work: Work[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Read what takes longer the more there is, so that nobody who looks for one row waits for it."""
        return await self._counter.call(partial(work, self._counting, *args, **kwargs))

    async def _beside(self, work: Callable[[], R]) -> R:
        """Run long work on a thread of its own, so that neither writing nor reading waits for it."""
        worker: SqliteWorker = Inline() if self._inline else Thread("ledger-beside")
        try:
            return await worker.call(work)
        finally:
            worker.dismiss()

    def _with_room(self, work: Callable[[], R]) -> R:
        try:
            self._file.check_room()
        except LedgerBroken as error:
            self._writing.give_up(str(error))
            raise
        return work()

    # -- the work that all SQL ledgers share ------------------------------------------------------------

    async def _show(self, work: Callable[P, Reading[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._read(steps.read, partial(work, *args, **kwargs))

    async def _load(self, work: Callable[P, Reading[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._read(steps.read, partial(work, *args, **kwargs))

    async def _load_page(self, work: Callable[P, Reading[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._read(steps.read_page, partial(work, *args, **kwargs))

    async def _refresh(self, work: Callable[P, Reading[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        # On the writing connection, since a list may occupy the reading one for long.
        return await self._write(steps.read, partial(work, *args, **kwargs))

    async def _change(self, work: Callable[P, Changing[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        # Behind all other work, so that a crowd of changes delays nobody's events, and joined with each other.
        change = partial(steps.change, self._writing, partial(work, *args, **kwargs))
        return await self._writer.call(change, joins=True, rank=Rank.CHANGE)

    async def _import_lists(self) -> None:
        if not self._has_lists:
            try:
                await self._lister.call(partial(import_module, LISTS))
            except OSError as error:
                # No descriptors or memory are left: the next call may have them again.
                raise LedgerUnavailable(f"{LISTS} cannot be read now: {error}") from error
            self._has_lists = True

    async def _list(self, work: Callable[P, Steps[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        from surehook.ledgers.sqlite.core_sql import look

        return await self._lister.call(partial(look, self._listing, partial(work, *args, **kwargs)))

    async def _list_indexes(self) -> ListIndexes:
        return IN_ONE_FILE
