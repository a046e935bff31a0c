"""An event loop's batches on SQLite: the loop writes the rows, and a thread waits for the disk.

A thread that writes rows beside a busy loop has to win the interpreter back after each statement, twenty times a batch, and
the loop pays each time for waking it: in all more than the rows themselves, and a third of what a process accepts. So the rows
are written between two turns of the loop (for a hundred requests a few milliseconds, as long as the interpreter would have
been taken anyway), and only the commit, which waits, is a thread's.

The loop itself waits for nobody. Where somebody else holds the database, a thread waits for it and writes the whole batch;
where rows took long, because pages came from a slow disk, threads write for a while.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from surehook.inbox.sql.store_errors import is_locked, translated
from surehook.inbox.sql.stores import SqlStore, begin
from surehook.inbox.sql.transaction import SqlTransaction
from surehook.inbox.sql.transaction_deadlines import STORE_S
from surehook.ports.inbox import Transaction

T = TypeVar("T")

SLOW_S = 0.25  # for the rows of one batch, at most 512 events: commonly under 20 ms, and 100 ms with a full garbage collection
REST_S = 10.0  # in which threads write after that


class LoopStore:
    """Runs one piece of work after another on a store that blocks. `boot` is a clock in seconds, `thread` has one thread; what
    cannot be shared with it is all done there."""

    def __init__(self, store: SqlStore, thread: ThreadPoolExecutor, boot: Callable[[], float]) -> None:
        self._store, self._thread, self._boot = store, thread, boot
        self._own: Connection | None = None
        self._last: Future[Any] | None = None
        self._not_before = 0.0 if store.commits_apart else math.inf

    async def run(self, work: Callable[[Transaction], T]) -> T:
        """`work` in a transaction, committed when it returns. Raises StoreError and what `work` raises."""
        own = await self._begun()
        if own is None:
            return await self._in_thread(lambda: self._store.run(work, STORE_S))
        result = self._written(own, work)
        await asyncio.shield(self._in_thread(lambda: self._commit(own)))  # whoever is cancelled, it happens
        return result

    def close(self) -> None:
        """Let the connection go, after what is being committed."""
        self._drop()

    def _in_thread(self, function: Callable[[], T]) -> asyncio.Future[T]:
        future = self._last = self._thread.submit(function)
        return asyncio.wrap_future(future)

    async def _begun(self) -> Connection | None:
        """The own connection in a transaction and with the turn, or None: this batch is for a thread."""
        if self._boot() < self._not_before or not (self._last is None or self._last.done()):
            return None  # somebody who was cancelled has left the thread waiting for the turn, perhaps
        if self._own is None:
            await self._in_thread(self._connect)
        own = self._own
        if own is None or not self._store.turn.acquire(blocking=False):
            return None
        try:
            begin(own)
        except SQLAlchemyError as error:
            self._store.turn.release()
            if not (isinstance(error, DBAPIError) and is_locked(error)):
                self._drop()
                self._not_before = self._boot() + REST_S
            return None
        return own

    def _connect(self) -> None:
        """A connection that is no pool's, so that nobody waits for it; none where readers could hold up a commit."""
        with translated(), ExitStack() as closing:
            connection = closing.enter_context(self._store.engine.connect())
            connection.detach()
            if connection.exec_driver_sql("PRAGMA journal_mode").scalar() != "wal":
                self._not_before = math.inf
                return
            connection.exec_driver_sql("PRAGMA busy_timeout=0")
            connection.rollback()
            self._own = connection
            closing.pop_all()

    def _written(self, own: Connection, work: Callable[[Transaction], T]) -> T:
        began = self._boot()
        try:
            with translated():
                result = work(SqlTransaction(own))
        except BaseException:
            try:
                own.rollback()
            except SQLAlchemyError:
                self._drop()
            finally:
                self._store.turn.release()
            raise
        if self._boot() - began > SLOW_S:
            self._not_before = self._boot() + REST_S
        return result

    def _commit(self, own: Connection) -> None:
        try:
            with translated():
                own.commit()
        except BaseException:
            self._drop()
            raise
        finally:
            self._store.turn.release()

    def _drop(self) -> None:
        own, self._own = self._own, None
        if own is not None:
            self._thread.submit(_closed, own)  # closing the last connection moves the whole log


def _closed(connection: Connection) -> None:
    with suppress(SQLAlchemyError):
        connection.close()
