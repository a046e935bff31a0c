"""SQLite's one writer: a transaction begins when something is about to be written, not when work begins.

Whoever has begun a transaction on SQLite keeps all others from writing, also those who store what arrives. A handler often does
something slow first, asks another service, and then uses `tx`; so a transaction begins with the first statement, whosever it
is. What a worker has to know before that, that the lease is its own and how the document stands, it reads outside of any
transaction, and reads it again as the transaction begins: if it is not as it was, all of this is done again, or left to the
worker that has it now.

Only a run that is alone in its transaction begins so late: the others of a batch would find it begun.

A transaction may be cut by another thread (interrupting.py). No check before a statement would do, since the statement runs after
it. The connection is no pool's any more.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from sqlalchemy import Connection, event
from sqlalchemy.pool import NullPool, QueuePool

from surehook.inbox.sql import claiming, documenting, interrupting
from surehook.inbox.sql.driver_connections import (
    CHANGED,
    AiosqliteConnection,
    GivenConnection,
    driver,
    in_transaction,
    let_go,
    of_aiosqlite,
    own_options,
    pooled,
)
from surehook.inbox.sql.handler_commits import REFUSED_STATEMENT, HandlerCommits
from surehook.inbox.sql.handler_statements import traces
from surehook.ports.inbox import DocumentMoved, DocumentRow, LostLease, StoreError
from surehook.ports.inbox_runs import DocumentKey

T = TypeVar("T")


class Lock(Protocol):
    """The turn of this process's threads or tasks. Waiting for each other here, they take it at once; in SQLite they would
    sleep and try."""

    def take(self) -> None: ...

    def give(self) -> None: ...


class Writer:
    """One transaction that has perhaps not begun. All but `cut` is called by who runs it.

    has_turn  the lock was taken already: others have the same connection, and must not even read in between
    """

    def __init__(self, lock: Lock, *, has_turn: bool = False) -> None:
        self._lock = lock
        # the lock, while it is ours: whoever takes it out of here gives it
        self._held: list[Lock] = [lock] if has_turn else []
        self._checks: list[Callable[[Connection], None]] = []
        self._savepoint: str | None = None
        self._ending = threading.Lock()  # either its owner ends it, or another one
        self._is_over = False
        self.is_cut = False
        self.has_begun = False
        self.is_open = False  # SQLite has begun it: while it waits for another process, it has not
        self.has_driver = False  # its owner was given the driver's connection
        # Something of its owner outlasts the transaction: rows that are still to be fetched, whose old view of the file nobody
        # can write with; a setting; a temporary table.
        self.is_spoilt = False
        self._brake: threading.Event | None = None  # of a connection that a handler had
        self.only_reads = False  # it sees what stood as it began, and others write meanwhile

    @property
    def has_turn(self) -> bool:
        """True if all others of this process wait for its end."""
        return bool(self._held)

    def about_to(self, connection: Connection) -> None:
        """Begin, if a statement is about to run that needs it."""
        if self.is_cut:
            self.check_cut()
        if not self.has_begun:
            self.begin(connection)

    def watch(self, connection: Connection) -> None:
        """See the statements of whoever is given the connection, as long as this object of it lives: one transaction."""

        def about_to(
            _: Connection, cursor: object, statement: str, values: object, *rest: object
        ) -> tuple[str, object]:
            found = traces(statement, "sqlite")
            if found.ends:
                raise HandlerCommits(REFUSED_STATEMENT)
            self.about_to(connection)
            if found.outlasts:
                self.spoilt()
                pooled(connection).info[CHANGED] = True
            return statement, values

        event.listen(connection, "before_cursor_execute", about_to, retval=True)
        self._brake = interrupting.brake_of(connection)
        # The driver says nothing of its statements, so whoever asks for its own connection is about to say one.
        connection.__class__ = HandlerConnection
        connection.__dict__["surehook_writer"] = self

    def begin(self, connection: Connection) -> None:
        """Begin now. As a writer, unless nothing is to be written: a reader that becomes one later may be refused at once, and
        not wait."""
        if not self._held and not self.only_reads:
            self._lock.take()
            self._held.append(self._lock)
        self.has_begun = True  # the statements that follow are part of it
        try:
            self.check_cut()  # while it waited for the lock
            with own_options(connection):
                self._open(connection)
                self.is_open = True
                for check in self._checks:
                    check(connection)
                if self._savepoint is not None:
                    connection.exec_driver_sql(self._savepoint)
        except BaseException as error:
            if _is_old(error):
                self.spoilt()
            # The next statement tries again, whatever becomes of this error.
            self.has_begun = self.is_open = False
            self._undo(connection)
            if self.is_cut:
                self.end()
            raise

    def check_cut(self) -> None:
        if self.is_cut:
            raise StoreError("this transaction was ended from outside")

    def _open(self, connection: Connection) -> None:
        if not in_transaction(connection):
            connection.exec_driver_sql("BEGIN" if self.only_reads else "BEGIN IMMEDIATE")

    def _undo(self, connection: Connection) -> None:
        with suppress(Exception):
            driver(connection).rollback()

    def over(self) -> None:
        """Note that its work is done or has failed. Nobody else may touch the connection from now on; see `check_cut`."""
        with self._ending:
            self._is_over = True

    def spoilt(self) -> None:
        """Note that its owner leaves something on the connection."""
        self.is_spoilt = True

    def gives_driver(self, connection: Connection) -> None:
        """Note that its owner is given the driver's connection: it is about to say something, and nobody hears what."""
        self.has_driver = self.is_spoilt = True
        pooled(connection).info[CHANGED] = True
        self.about_to(connection)

    def drop_spoilt(self, connection: Connection) -> None:
        """Have the connection closed with its transaction, and not given to others, where something was left on it."""
        is_lost = connection.closed or connection.invalidated or self.is_cut
        if self.is_spoilt and not (is_lost or _others_have(connection) or _is_in_memory(connection)):
            let_go(connection)

    def end(self) -> None:
        """Note that it was committed, or rolled back, or never began. Its own thread and one that cuts it may both call."""
        with suppress(IndexError):
            self._held.pop().give()

    # -- before it begins ---------------------------------------------------------------------------------------

    def hold(self, connection: Connection, runs: Sequence[bytes], token: bytes) -> set[bytes]:
        mine = self._peeked(connection, lambda: claiming.hold(connection, runs, token))

        def check(connection: Connection) -> None:
            if claiming.hold(connection, runs, token) != mine:
                raise LostLease("another worker has taken the run")

        self._checks.append(check)
        return mine

    def documents(
        self, connection: Connection, keys: Sequence[DocumentKey]
    ) -> dict[DocumentKey, DocumentRow]:
        rows = self._peeked(connection, lambda: documenting.standing(connection, keys))

        def check(connection: Connection) -> None:
            # Not by when it wakes: a claim moves that, and nothing else.
            if _bodies(documenting.locked(connection, keys)) != _bodies(rows):
                raise DocumentMoved("the document has moved meanwhile")

        self._checks.append(check)
        return rows

    def _peeked(self, connection: Connection, read: Callable[[], T]) -> T:
        self.check_cut()
        return read()

    def say(self, connection: Connection, statement: str) -> None:
        """Run a statement about savepoints: one is made as soon as there is something that it may have to undo."""
        if statement.startswith("SAVEPOINT"):
            self._savepoint = statement
            return
        self._savepoint = None
        # By a driver's connection that the handler kept from another time: it is all that was done.
        if statement.startswith("ROLLBACK") and in_transaction(connection):
            self._undo(connection)

    # -- from another thread ------------------------------------------------------------------------------------

    def cut(self, connection: Connection) -> bool:
        """End it, so that nothing of it is kept, nor of what its owner does with the connection from now on; whether that was
        possible. Comes back in half a second; where SQLite waits for another process, it ends after that, and is not yet."""
        return interrupting.ended(lambda: self._cut(connection), lambda: driver(connection).interrupt())

    def _cut(self, connection: Connection) -> bool:
        with self._ending:  # its owner would close the connection under the hands of who rolls it back
            if self._is_over:
                return True
            self.is_cut = True
            if connection.closed:  # by its owner, and so rolled back
                self.end()
                return True
            if _others_have(connection):
                return False
            try:
                self._shut(connection)
                let_go(connection)
            except Exception:  # a connection that is tied to its thread, or was lost
                return False
        return True

    def _shut(self, connection: Connection) -> None:
        own = driver(connection)
        if self._brake is not None:
            self._brake.set()
        interrupting.roll_back(own)
        self.end()


class AsyncWriter(Writer):
    """A task's writer. It is cut by its loop, which must not wait: that happens in a task of its own."""

    _cutting: asyncio.Task[None] | None = None  # a loop does not keep its tasks

    def cut(self, connection: Connection) -> bool:
        return self._cut(connection)

    def _shut(self, connection: Connection) -> None:
        rolled_back = self._rolled_back(of_aiosqlite(connection), self._brake or threading.Event())
        self._cutting = asyncio.get_running_loop().create_task(rolled_back)

    async def _rolled_back(self, own: AiosqliteConnection, brake: threading.Event) -> None:
        with suppress(Exception):  # the owner is back, and has closed it
            await interrupting.rolled_back(own, brake)
            self.end()


class HandlerConnection(GivenConnection):
    """A connection as handlers have it on SQLite: the transaction begins as the driver's own is asked for."""

    surehook_writer: Writer

    def _gives_driver(self) -> None:
        self.surehook_writer.gives_driver(self)


def _is_old(error: BaseException) -> bool:
    """True if somebody is still to fetch rows by the connection, of how the file was before others wrote."""
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", None)
    return code == sqlite3.SQLITE_BUSY_SNAPSHOT


def _others_have(connection: Connection) -> bool:
    """True if others have the same connection of the driver."""
    return not isinstance(connection.engine.pool, QueuePool | NullPool)


def _is_in_memory(connection: Connection) -> bool:
    """True if a database may be gone with its last connection."""
    url = connection.engine.url
    database = url.database or ":memory:"
    return ":memory:" in database or "memory" in (url.query.get("mode"), database.partition("mode=")[2])


def _bodies(rows: dict[DocumentKey, DocumentRow]) -> list[str | None]:
    return [row.body for row in rows.values()]
