"""The connections under SQLAlchemy's: the pool's, with what is noted of it, and the driver's own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, cast

from sqlalchemy import Connection
from sqlalchemy.pool import PoolProxiedConnection

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import _ExecuteOptions
    from sqlalchemy.sql._typing import _InfoType

_PG_IDLE = 0  # PQTRANS_IDLE of libpq
_MYSQL_IN_TRANSACTION = 1  # SERVER_STATUS_IN_TRANS, which each answer tells
HANDLED = "surehook_inbox_handled"  # in a connection's `info`: a handler had it since it was given out
HANDLING = "surehook_inbox_handling"  # in a connection's `info`: a handler has it, and may not commit
CHANGED = "surehook_inbox_changed"  # in a connection's `info`: others in its transaction might see what a handler has set
OPTIONS = "surehook_inbox_options"  # in a connection's `info`: those it had before a handler was given it
POOLED = "surehook_inbox_pooled"  # in a connection's `info`: a pooler has made it, and lends it for a transaction perhaps
LEFT = "surehook_inbox_left"  # in a connection's `info`: a handler has perhaps set something that outlasts its transaction


class AiosqliteConnection(Protocol):
    """A connection of aiosqlite, which does one thing after another in a thread of its own."""

    def execute(self, sql: str) -> Awaitable[object]: ...

    async def rollback(self) -> None: ...

    async def interrupt(self) -> None: ...

    async def set_progress_handler(self, handler: Callable[[], bool], n: int) -> None: ...


def pooled(connection: Connection) -> PoolProxiedConnection:
    """The pool's connection under this one, for whoever begins nothing by asking for it."""
    return _POOLED(connection)


_POOLED: Callable[[Connection], PoolProxiedConnection] = Connection.connection.fget  # type: ignore[attr-defined]


def of_aiosqlite(connection: Connection) -> AiosqliteConnection:
    """The driver's own connection of an event loop."""
    return cast(AiosqliteConnection, pooled(connection).driver_connection)


def let_go(connection: Connection) -> None:
    """Free its place in the pool, whenever its owner comes back."""
    pooled(connection).detach()
    pooled(connection).info.pop(HANDLING, None)  # which was copied


class GivenConnection(Connection):
    """A connection as handlers have it: what they set on the driver's own (row factories, codecs) the next ones would have to
    live with."""

    @property
    def connection(self) -> PoolProxiedConnection:
        own = super().connection
        if own.info.get(HANDLING):
            self._gives_driver()
        return own

    @property
    def info(self) -> _InfoType:
        """Notes on the pool's connection: whoever reads them, as at an error, sets and says nothing by that."""
        return pooled(self).info

    def restore(self, options: _ExecuteOptions) -> None:
        """Drop the options that a handler gave it (`tx.execution_options`): cursors of the server, or another schema, would be
        those of our own statements and of the next handlers."""
        self._execution_options = options

    def _gives_driver(self) -> None:
        self.info[LEFT] = True

    def close(self) -> None:
        """Close it for good where that is due: a handler that does so itself would give it back to the pool."""
        drop_left(self)
        super().close()


def give(connection: Connection) -> None:
    """Note from now on whether handlers are given the driver's own connection, as long as this object lives: one transaction."""
    connection.__class__ = GivenConnection


def begin_notes(connection: Connection) -> _InfoType:
    """The notes of a connection, as a transaction begins."""
    own = connection.info
    own.pop(CHANGED, None)
    return own


def was_changed(notes: _InfoType) -> bool:
    """Tell whether others in this transaction might see what a handler has set, or whether it had the driver's own connection."""
    return CHANGED in notes or LEFT in notes


def lend(connection: Connection, notes: _InfoType) -> _ExecuteOptions:
    """Note that a handler has it from now on; its options, for `take_back`."""
    options = connection.get_execution_options()
    notes.update({HANDLING: connection, HANDLED: True, OPTIONS: options})
    return options


@contextmanager
def own_options(connection: Connection) -> Iterator[None]:
    """Say something of our own while a handler has the connection: without the options that it gave it."""
    own = pooled(connection).info.get(OPTIONS)
    if own is None or not isinstance(connection, GivenConnection):
        yield
        return
    theirs = connection.get_execution_options()
    connection.restore(own)
    try:
        yield
    finally:
        connection.restore(theirs)


def take_back(connection: Connection, notes: _InfoType, options: _ExecuteOptions) -> None:
    """Note that the handler has it no more."""
    cast(GivenConnection, connection).restore(options)
    # A handler that closes its connection gives it back to the pool: another one may have it by now.
    if notes.get(HANDLING) is connection:
        del notes[HANDLING]


def drop_left(connection: Connection) -> None:
    """Have a connection closed with its transaction, and not given to others, on which a handler has perhaps left something."""
    if not (connection.closed or connection.invalidated) and pooled(connection).info.pop(LEFT, None):
        let_go(connection)


def driver(connection: Connection) -> Any:
    """The driver's own connection."""
    return pooled(connection).dbapi_connection


def in_transaction(connection: Connection) -> bool:
    """True if SQLite has begun a transaction, whoever asked for it."""
    faces = (driver(connection), pooled(connection).driver_connection)  # aiosqlite has two
    return any(getattr(face, "in_transaction", False) for face in faces)


def has_ended(connection: Connection) -> bool:
    """True if the driver says that no transaction is open, where it knows that; as another thread may ask it."""
    own = driver(connection)
    match connection.dialect.driver:
        case "psycopg":
            return bool(own.info.transaction_status == _PG_IDLE)
        case "psycopg2":
            return bool(own.get_transaction_status() == _PG_IDLE)
        case "asyncpg":
            return not own.driver_connection.is_in_transaction()
        case "pymysql":
            return not own.server_status & _MYSQL_IN_TRANSACTION
    return connection.dialect.name == "sqlite" and not in_transaction(connection)
