"""What all parts of the ledger stand on: the sessions, who works on them, and the order of opening."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, Concatenate, ParamSpec, TypeVar

from surehook.core.errors import LedgerBroken, LedgerUnavailable
from surehook.ledgers.sqlite.driver import Driver
from surehook.ledgers.sqlite.opening import open_reader, open_writer
from surehook.ledgers.sqlite.others import Others
from surehook.ledgers.sqlite.place import FLOOR_BYTES, Nowhere, Place
from surehook.ledgers.sqlite.session import Session
from surehook.ledgers.sqlite.workers import Inline, Rank, Thread, Worker
from surehook.ports.reading import Room

P = ParamSpec("P")
R = TypeVar("R")


class Desk:
    """Sessions on one file, each on a thread of its own: one writes, one reads, and one counts, for which no list waits.

    path              the database file
    inline            everything on the calling thread and one connection, so that a simulated loop orders it
    driver            the binding; the standard library's unless told otherwise
    disk_floor_bytes  free bytes below which no new work is taken (LedgerFull)
    """

    def __init__(
        self,
        path: str,
        *,
        inline: bool = False,
        driver: Driver | None = None,
        disk_floor_bytes: int = FLOOR_BYTES,
    ) -> None:
        self.path = path
        self._driver = driver if driver is not None else Driver()
        self._inline = inline
        self._place = Place(path, floor_bytes=disk_floor_bytes) if self._driver.on_disk else Nowhere()
        self._writing = Session(self._driver, path)
        self._reading = self._writing if inline else Session(self._driver, path)
        self._counting = self._writing if inline else Session(self._driver, path)
        self._writer: Worker = Inline()
        self._reader: Worker = Inline()
        self._counter: Worker = Inline()
        self._lists_sql: Any = None
        self._others = Others()  # told by whatever makes rows ready

    async def open(self, *, now: int) -> None:
        """Take the place, connect, bring the schema to its head. Raises SettingsError where it cannot serve."""
        if not self._inline:
            self._writer = Thread("ledger-writer", self._writing.joint)
            self._reader = Thread("ledger-reader")
            self._counter = Thread("ledger-counter")
        try:
            await self._writer.call(self._open_writing)
            if not self._inline:
                await self._reader.call(partial(open_reader, self._reading))
                await self._counter.call(partial(open_reader, self._counting))
        except BaseException:
            await self.close()
            raise

    def _open_writing(self) -> None:
        self._place.take()
        open_writer(self._writing)

    async def close(self) -> None:
        """Close the connections, the writing one last (it empties the log into the file), and leave the place."""
        if self._reading is not self._writing:
            await self._reader.call(self._reading.close)
            await self._counter.call(self._counting.close)
        await self._writer.call(self._writing.close)
        self._reader.stop()
        self._counter.stop()
        self._writer.stop()
        self._writer = self._reader = self._counter = Inline()
        self._place.leave()

    def room(self) -> Room | None:
        return self._place.room()

    async def size_bytes(self) -> int | None:
        return self._place.size_bytes()

    async def _write(
        self, work: Callable[Concatenate[Session, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        return await self._writer.call(partial(work, self._writing, *args, **kwargs))

    async def _later(
        self, work: Callable[Concatenate[Session, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Write what can wait a little: behind all others, in a transaction of its own."""
        return await self._writer.call(partial(work, self._writing, *args, **kwargs), rank=Rank.BULK)

    async def _join(self, work: Callable[Concatenate[Session, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Write, in one transaction with neighbours in the line: for work that leaves nothing but rows."""
        return await self._writer.call(partial(work, self._writing, *args, **kwargs), joins=True)

    async def _add(self, work: Callable[Concatenate[Session, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Write new work, where there is room for it; else like `_join`."""
        work_here = partial(work, self._writing, *args, **kwargs)
        return await self._writer.call(partial(self._with_room, work_here), joins=True)

    async def _add_quickly(
        self, work: Callable[Concatenate[Session, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Write a little new work, where there is room for it, before all others; else like `_add`."""
        work_here = partial(work, self._writing, *args, **kwargs)
        return await self._writer.call(partial(self._with_room, work_here), joins=True, rank=Rank.QUICK)

    async def _add_later(
        self, work: Callable[Concatenate[Session, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Write new work, where there is room for it; else like `_later`."""
        work_here = partial(work, self._writing, *args, **kwargs)
        return await self._writer.call(partial(self._with_room, work_here), rank=Rank.BULK)

    async def _read(self, work: Callable[Concatenate[Session, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._reader.call(partial(work, self._reading, *args, **kwargs))

    async def _count(
        self, work: Callable[Concatenate[Session, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Read what takes the longer the more there is: whoever looks for one row does not wait for it."""
        return await self._counter.call(partial(work, self._counting, *args, **kwargs))

    def _with_room(self, work: Callable[[], R]) -> R:
        try:
            self._place.check_room()
        except LedgerBroken as error:
            self._writing.give_up(str(error))
            raise
        return work()

    async def _beside(self, work: Callable[[], R]) -> R:
        """Run long work on a thread of its own, so that neither writing nor reading waits for it."""
        worker: Worker = Inline() if self._inline else Thread("ledger-beside")
        try:
            return await worker.call(work)
        finally:
            worker.dismiss()

    async def _core_sql(self) -> Any:
        """What needs SQLAlchemy, imported when first asked for, and not on the writer's thread."""
        if self._lists_sql is None:  # `sys.modules` has a module before it is whole
            name = "surehook.ledgers.sqlite.core_sql"
            try:
                self._lists_sql = await self._reader.call(partial(import_module, name))
            except OSError as error:  # no descriptors or memory left: the next call may have them again
                raise LedgerUnavailable(f"{name} cannot be read now: {error}") from error
        return self._lists_sql
