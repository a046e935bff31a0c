"""Transactions on both kinds of engine."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TypeVar

from sqlalchemy import Connection, Engine, ExceptionContext, event
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import QueuePool
from sqlalchemy.util import await_only

from surehook.host.forking import renew_in_children
from surehook.inbox.sql import (
    driver_connections,
    engines,
    forgetting,
    interrupting,
    open_transactions,
    rights,
    versions,
)
from surehook.inbox.sql.contention import NO_STATEMENT, state_of
from surehook.inbox.sql.deferred_begin import AsyncWriter, Writer
from surehook.inbox.sql.driver_connections import CHANGED, HANDLING, LEFT, GivenConnection
from surehook.inbox.sql.handler_commits import (
    FAILED_WITHIN,
    REFUSED,
    REFUSED_STATEMENT,
    HandlerCommits,
    HandlerEndedIt,
    is_without_savepoint,
)
from surehook.inbox.sql.handler_statements import traces
from surehook.inbox.sql.open_transactions import Open
from surehook.inbox.sql.store_errors import plainly, step, translated
from surehook.inbox.sql.transaction import SqlTransaction
from surehook.inbox.sql.transaction_deadlines import THREADS, TaskDeadline, TransactionDeadline
from surehook.ports.inbox import StoreUnavailable, Transaction

T = TypeVar("T")

CLOSE_S = 2.0  # for letting connections go
BUSY = (
    f"SQLite has one writer, and another transaction here has been writing for {engines.BUSY_MS / 1000:g} s, or has waited "
    "so long for a process that does"
)


class WriterLock:
    """The turn of threads."""

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock

    def take(self) -> None:
        if not self._lock.acquire(timeout=engines.BUSY_MS / 1000):
            raise StoreUnavailable(BUSY)

    def give(self) -> None:
        self._lock.release()


class AsyncWriterLock:
    """The turn of tasks; taken where SQLAlchemy may wait."""

    def __init__(self, lock: asyncio.Lock) -> None:
        self._lock = lock

    def take(self) -> None:
        await_only(self.taken())

    async def taken(self) -> None:
        try:
            async with asyncio.timeout(engines.BUSY_MS / 1000):
                await self._lock.acquire()
        except TimeoutError:
            raise StoreUnavailable(BUSY) from None

    def give(self) -> None:
        self._lock.release()


class SqlStore:
    """`ports.inbox.Store` on an `Engine`.

    idle_ms  how long PostgreSQL and MariaDB keep a transaction in which nothing is asked for; None: as they are set up

    Raises SettingsError for an engine on whose connections nothing can be kept together.
    """

    def __init__(self, engine: Engine, *, sessions: bool = False) -> None:
        self._is_shared = engines.is_shared(engine, is_async=False)
        self.engine = engine
        self.sessions = sessions
        self.idle_ms: int | None = None
        self.forked()
        renew_in_children(self)
        _guard(engine)

    def forked(self) -> None:
        """A transaction of the parent has no end here: its thread is not a child's."""
        self.turn = threading.Lock()
        self._open: dict[int, Open] = {}  # by thread

    @property
    def commits_apart(self) -> bool:
        """True if one thread may commit what another has written: in a file of SQLite, whose connections are a queue's."""
        dialect = self.engine.dialect
        return (dialect.name, dialect.driver) == ("sqlite", "pysqlite") and isinstance(
            self.engine.pool, QueuePool
        )

    def run(self, work: Callable[[Transaction], T], within_s: float | None = None) -> T:
        """See the port. After `within_s` seconds the connection is cut; on SQLite, where nobody is silent, nothing is."""
        open_transactions.refuse_within(self._open.get(threading.get_ident()))
        writer = self._writer()
        try:
            with translated(), self._within(within_s, writer) as deadline, self.engine.begin() as connection:
                if deadline is not None:
                    deadline.connected(lambda: open_transactions.cut((connection, writer)))
                transaction = SqlTransaction(
                    connection, sessions=self.sessions, idle_ms=self.idle_ms, writer=writer, within_s=within_s
                )
                with self._known(connection, writer):
                    return inside(connection, transaction, work, writer)
        finally:
            if writer is not None:
                writer.end()

    def _writer(self) -> Writer | None:
        if self.engine.dialect.name != "sqlite":
            return None
        lock = WriterLock(self.turn)
        if self._is_shared:
            lock.take()
        return Writer(lock, has_turn=self._is_shared)

    def _within(
        self, seconds: float | None, writer: Writer | None
    ) -> AbstractContextManager[TransactionDeadline | None]:
        return nullcontext() if seconds is None or writer is not None else THREADS.within(seconds)

    @contextmanager
    def _known(self, connection: Connection, writer: Writer | None) -> Iterator[None]:
        """While it lasts, the calling thread is in this transaction, for `cut`: a handler that asks the inbox for something is in
        two, of which the first has its work."""
        thread = threading.get_ident()
        mine = connection, writer
        first = self._open.setdefault(thread, mine)
        try:
            yield
        finally:
            if first is mine:
                del self._open[thread]

    def cut(self, thread: int) -> bool:
        """End the transaction of a thread that hangs in it, from another one; whether that was possible."""
        return open_transactions.cut(self._open.get(thread))

    def has_ended(self, thread: int) -> bool:
        """Tell whether a handler in a thread has ended the transaction that it is in."""
        return open_transactions.has_ended(self._open.get(thread))

    def create(self) -> None:
        with plainly(), translated(rights.missing_for(self.engine, step)), self.engine.begin() as connection:
            _made(connection)

    def close(self) -> None:
        self.engine.dispose()


class AsyncSqlStore:
    """`ports.inbox.AsyncStore` on an `AsyncEngine`. Raises SettingsError as `SqlStore`."""

    def __init__(self, engine: AsyncEngine, *, sessions: bool = False) -> None:
        self._is_shared = engines.is_shared(engine.sync_engine, is_async=True)
        self.engine = engine
        self.sessions = sessions
        self.idle_ms: int | None = None
        self._turn = asyncio.Lock()
        self._open: dict[int, Open] = {}  # by task
        _guard(engine.sync_engine)

    async def run(self, work: Callable[[Transaction], T], within_s: float | None = None) -> T:
        """See the port; `within_s` as for `SqlStore`."""
        task = id(asyncio.current_task())
        around = self._open.get(task)
        open_transactions.refuse_within(around)
        writer = await self._writer()
        try:
            with translated(), self._within(within_s, writer) as deadline:
                async with self.engine.begin() as connection:

                    def begun(blocking: Connection) -> T:
                        if deadline is not None:
                            deadline.connected(lambda: open_transactions.cut((blocking, writer)))
                        self._open.setdefault(task, (blocking, writer))
                        transaction = SqlTransaction(
                            blocking, connection, sessions=self.sessions, idle_ms=self.idle_ms, writer=writer,
                            within_s=within_s,
                        )  # fmt: skip
                        return inside(blocking, transaction, work, writer)

                    return await connection.run_sync(begun)
        finally:
            if around is None:
                self._open.pop(task, None)
            if writer is not None:
                writer.end()

    async def _writer(self) -> AsyncWriter | None:
        if self.engine.dialect.name != "sqlite":
            return None
        lock = AsyncWriterLock(self._turn)
        if self._is_shared:
            await lock.taken()
        return AsyncWriter(lock, has_turn=self._is_shared)

    def _within(
        self, seconds: float | None, writer: Writer | None
    ) -> AbstractContextManager[TransactionDeadline | None]:
        return nullcontext() if seconds is None or writer is not None else TaskDeadline(seconds)

    def cut(self, task: int) -> bool:
        """End the transaction of a task that hangs in it; whether that was possible."""
        return open_transactions.cut(self._open.get(task))

    def has_ended(self, task: int) -> bool:
        """Tell whether a handler in a task has ended the transaction that it is in."""
        return open_transactions.has_ended(self._open.get(task))

    async def create(self) -> None:
        with plainly(), translated(rights.missing_for(self.engine.sync_engine, step)):
            async with self.engine.begin() as connection:
                await connection.run_sync(_made)

    async def close(self) -> None:
        # A driver says farewell to a server, and waits for one that is silent.
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self.engine.dispose()


def _made(connection: Connection) -> None:
    begin(connection)
    versions.upgrade(connection)


def inside(
    connection: Connection,
    transaction: SqlTransaction,
    work: Callable[[Transaction], T],
    writer: Writer | None,
) -> T:
    """Do `work`, in a transaction of the connection that may be committed. Raises StoreError where that
    was cut, and what `work` raises."""
    try:
        result = work(transaction)
    except BaseException as error:
        if writer is not None:
            writer.over()
        if (isinstance(error, HandlerEndedIt) or transaction.is_ended) and not connection.closed:
            # For SQLAlchemy it is over, for the database it is not: the next one to use this connection would commit what was
            # done here. One that the handler has closed was rolled back by its pool.
            connection.invalidate()
        else:
            drop_left(connection, writer)
        raise
    if writer is not None:
        writer.over()
        writer.check_cut()
    else:
        forgetting.before_commit(connection)
    drop_left(connection, writer)
    return result


def drop_left(connection: Connection, writer: Writer | None) -> None:
    """Have the connection closed where a handler has left something on it."""
    if writer is None:
        driver_connections.drop_left(connection)
    else:
        writer.drop_spoilt(connection)


def begin(connection: Connection) -> None:
    """On SQLite, begin as a writer: a reader that becomes one later may be refused at once, without waiting."""
    if connection.dialect.name == "sqlite" and not driver_connections.in_transaction(connection):
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _is_handling(connection: Connection) -> bool:
    """Tell whether a handler has the driver's connection under this one, and has not given it back by closing its own."""
    if connection.invalidated:
        return False
    handed: Connection | None = connection.info.get(HANDLING)
    return handed is not None and not handed.closed


def _guard(engine: Engine) -> None:
    """A handler that commits would make its effects stand without the mark that they are done: refuse it before it happens."""

    def refuse(connection: Connection) -> None:
        if _is_handling(connection):
            raise HandlerCommits(REFUSED)

    def failed(context: ExceptionContext) -> None:
        connection, error = context.connection, context.original_exception
        if connection is None or connection.invalidated or is_without_savepoint(error):
            return
        if isinstance(connection, GivenConnection) and state_of(error) == NO_STATEMENT:
            connection.info[LEFT] = True
        if isinstance(error, asyncio.CancelledError) and connection.dialect.driver == "aiosqlite":
            interrupting.end_transaction(connection)
        if _is_handling(connection):
            # it may have ended the transaction, and the handler may catch it
            connection.info[FAILED_WITHIN] = True

    def leaves(connection: Connection, _: object, said: object, *rest: object) -> None:
        if not _is_handling(connection):
            return
        found = traces(said, connection.dialect.name)
        if found.ends:
            raise HandlerCommits(REFUSED_STATEMENT)
        if found.changes:
            connection.info[CHANGED] = True
        if found.outlasts:
            connection.info[LEFT] = True

    if engine.dialect.name != "sqlite":  # there, a transaction begins with what is said (deferred_begin.py)
        event.listen(engine, "before_cursor_execute", leaves)
    event.listen(engine, "handle_error", failed)
    event.listen(engine, "commit", refuse)
    event.listen(engine, "rollback", refuse)
