"""Transactions on both kinds of engine, and the one place where errors of drivers become ours."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import (
    DBAPIError,
    DisconnectionError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import QueuePool

from surehook.core.errors import SurehookError
from surehook.inbox.sql import versions
from surehook.inbox.sql.book import HANDLING, HandlerCommits, SqlBook
from surehook.ports.inbox import Book, Contended, StoreError, StoreUnavailable

T = TypeVar("T")

# SQLSTATE classes: connection, insufficient resources, operator intervention, system error, transaction rollback (deadlock,
# serialization), and lock_not_available.
_AWAY = ("08", "53", "57", "58", "40", "55P03")
_CONTENDED = ("40", "55P03")
# What SQLite, PostgreSQL, and MySQL with MariaDB say of a table of ours that is not there.
_NO_TABLE = re.compile(r"(no such table|relation|Table).*surehook_inbox", re.DOTALL)
_CONTENDED_MYSQL = (1205, 1213)  # lock wait timeout, deadlock: their drivers tell numbers only


class SqlStore:
    """`ports.inbox.Store` on an `Engine`."""

    def __init__(self, engine: Engine, *, sessions: bool = False) -> None:
        self.engine = engine
        self.sessions = sessions
        # SQLite has one writer. Waiting for each other here, threads take turns at once; in SQLite they would sleep and try.
        one_writer = engine.dialect.name == "sqlite"
        self.turn: Any = threading.Lock() if one_writer else nullcontext()
        _guard(engine)

    @property
    def commits_apart(self) -> bool:
        """Whether one thread may commit what another has written: in a file of SQLite, whose connections are a queue's."""
        dialect = self.engine.dialect
        return (dialect.name, dialect.driver) == ("sqlite", "pysqlite") and isinstance(
            self.engine.pool, QueuePool
        )

    def run(self, work: Callable[[Book], T]) -> T:
        with self.turn, translated(), self.engine.begin() as connection:
            return _inside(connection, SqlBook(connection, sessions=self.sessions), work)

    def create(self) -> None:
        with translated(), self.engine.begin() as connection:
            _made(connection)

    def close(self) -> None:
        self.engine.dispose()


class AsyncSqlStore:
    """`ports.inbox.AsyncStore` on an `AsyncEngine`."""

    def __init__(self, engine: AsyncEngine, *, sessions: bool = False) -> None:
        self.engine = engine
        self.sessions = sessions
        self._turn: Any = asyncio.Lock() if engine.dialect.name == "sqlite" else nullcontext()
        _guard(engine.sync_engine)

    async def run(self, work: Callable[[Book], T]) -> T:
        with translated():
            async with self._turn, self.engine.begin() as connection:

                def inside(blocking: Connection) -> T:
                    return _inside(blocking, SqlBook(blocking, connection, sessions=self.sessions), work)

                return await connection.run_sync(inside)

    async def create(self) -> None:
        with translated():
            async with self.engine.begin() as connection:
                await connection.run_sync(_made)

    async def close(self) -> None:
        await self.engine.dispose()


def _made(connection: Connection) -> None:
    begin(connection)
    versions.upgrade(connection)


def _inside(connection: Connection, book: SqlBook, work: Callable[[Book], T]) -> T:
    begin(connection)
    try:
        return work(book)
    except HandlerCommits:
        # SQLAlchemy takes the transaction for ended, the database does not: with this connection, the next one to use
        # it would commit what was done here.
        connection.invalidate()
        raise


def begin(connection: Connection) -> None:
    """On SQLite, begin as a writer: a reader that becomes one later may be refused at once, without waiting."""
    if connection.dialect.name == "sqlite" and not _in_transaction(connection):
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _in_transaction(connection: Connection) -> bool:
    return bool(getattr(connection.connection.dbapi_connection, "in_transaction", False))


@contextmanager
def translated() -> Iterator[None]:
    """Errors of the database that pass with time become StoreUnavailable, others StoreError; ours stay as they are."""
    try:
        yield
    except SurehookError:
        raise
    except (DisconnectionError, PoolTimeout, OSError) as error:
        raise StoreUnavailable(_first_line(error)) from error
    except DBAPIError as error:
        raise _ours(error)(_first_line(error)) from error
    except SQLAlchemyError as error:
        raise StoreError(_first_line(error)) from error


def _ours(error: DBAPIError) -> type[StoreError]:
    if is_contended(error):
        return Contended
    return StoreUnavailable if is_away(error) else StoreError


def is_contended(error: DBAPIError) -> bool:
    """Whether others wanted the same rows, so that the same transaction may do at once."""
    state = _state(error)
    if state is not None:
        return state.startswith(_CONTENDED)
    return bool(error.orig and error.orig.args and error.orig.args[0] in _CONTENDED_MYSQL)


def is_locked(error: DBAPIError) -> bool:
    """Whether another connection holds SQLite's file."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    return isinstance(code, int) and code & 0xFF == sqlite3.SQLITE_BUSY


def is_away(error: DBAPIError) -> bool:
    """Whether the database, and not the statement, is what is wrong."""
    if error.connection_invalidated:
        return True
    if isinstance(error, IntegrityError):
        return False
    state = _state(error)
    if state is not None:
        return state.startswith(_AWAY)
    return isinstance(error, OperationalError | InterfaceError)


def _state(error: DBAPIError) -> str | None:
    state = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
    return state if isinstance(state, str) else None


def _first_line(error: BaseException) -> str:
    """Without the statement and its parameters, which are people's data."""
    cause = getattr(error, "orig", None) or error
    said = f"{cause.__class__.__name__}: {cause}".splitlines()[0][:300]
    if _NO_TABLE.search(said):
        said += "; the tables of the inbox are made by its create_tables(), or as `surehook inbox ddl` prints them"
    return said


def _guard(engine: Engine) -> None:
    """A handler that commits would make its effects stand without the mark that they are done: refuse it before it happens."""

    def refuse(connection: Connection) -> None:
        if not connection.invalidated and connection.info.get(HANDLING):
            raise HandlerCommits("the inbox commits: a handler may only use savepoints (begin_nested)")

    event.listen(engine, "commit", refuse)
    event.listen(engine, "rollback", refuse)
