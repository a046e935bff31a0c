"""The bound on an idle transaction, which the database enforces: a process that freezes with rows locked would keep
them from all others for ever.

PostgreSQL is told in the transaction, which is safe behind a pooler. The statement that claims, or holds what was claimed, tells
it by the way; others are told before the first statement. MariaDB knows no such bound of one transaction: it is told for the
session, once for each connection of an engine that the inbox made, and with each use of a connection that is the application's,
which gets back what it had.

A transaction that stores what arrives has bounds of its own, shorter than the time after which the process gives it up: one
that freezes between an INSERT and the COMMIT would keep every other process from storing the same event, which its sender
repeats. They are told by that INSERT itself. MariaDB is told once for each connection of an engine that the inbox made; a
connection that a worker had keeps the worker's, and one of the application's what it has: there, each batch would cost two
statements more.
"""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple

from sqlalchemy import (
    Connection,
    Engine,
    Interval,
    bindparam,
    case,
    cast,
    event,
    func,
    literal_column,
    select,
    text,
)
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry
from sqlalchemy.types import String

GONE_MS = 500
# A statement goes on in the server when its client is gone, and so do its locks, unless the server looks for the client: from
# PostgreSQL 14 on, and not on every operating system, where the setting is refused.
_LOOK = (
    "CASE WHEN current_setting('server_version_num')::int >= 140000 AND version() LIKE '%linux%'"
    f" THEN set_config('client_connection_check_interval', '{GONE_MS}', true) END"
)
_VALUE = bindparam("idle", type_=String)
_IDLE = func.set_config("idle_in_transaction_session_timeout", _VALUE, True)
# A frozen client is not gone. One statement has as much time as a handler may have; what the application has set may be less.
_OWN = func.current_setting("statement_timeout")
_IS_LESS = cast(_OWN, Interval).between(text("'1 ms'::interval"), cast(func.concat(_VALUE, " ms"), Interval))
_STATEMENT = func.set_config("statement_timeout", case((_IS_LESS, _OWN), else_=_VALUE), True)
# A column for statements that lock rows, of value `idle`. Uncorrelated: it is done once, whatever the number of rows.
BY_THE_WAY = select(func.concat(_IDLE, _STATEMENT, literal_column(_LOOK))).scalar_subquery()
_ALONE = select(BY_THE_WAY)

# The same for an INSERT of many rows: a condition, asked once and never false.
STORE_BY_THE_WAY = (
    "(SELECT set_config('idle_in_transaction_session_timeout', '{idle_ms}', true)"
    " || set_config('lock_timeout', '{lock_ms}', true)) IS NOT NULL"
)

_TOLD = "surehook_inbox_idle"  # in a connection's `info`: what MariaDB was told
_TELL = "SET @surehook_idle = @@SESSION.idle_transaction_timeout, SESSION idle_transaction_timeout = "
_RESTORE = "SET SESSION idle_transaction_timeout = @surehook_idle"


class StoreBounds(NamedTuple):
    """The bounds of a transaction that stores what arrives: of idleness, and of waiting for a lock."""

    idle_ms: int
    lock_ms: int

    @classmethod
    def of(cls, within_s: float) -> StoreBounds:
        """Choose them for a transaction that is given up after so many seconds: what a frozen one has locked is free before the
        next one has waited for it too long, and that is before it is given up itself."""
        return cls(round(within_s * 500), round(within_s * 800))

    @property
    def condition(self) -> str:
        return STORE_BY_THE_WAY.format(idle_ms=self.idle_ms, lock_ms=self.lock_ms)


def bind_once(connection: Connection, idle_ms: int) -> None:
    """Tell MariaDB of the bound, if this connection of the inbox's own was told of none."""
    is_mariadb = getattr(connection.dialect, "is_mariadb", False)
    if not is_mariadb or _TOLD in connection.info:
        return
    if not event.contains(connection.engine, "checkin", _given_back):
        bind(connection, idle_ms)


def bind(connection: Connection, idle_ms: int) -> None:
    """Set the bound for the transaction that is open, or opens with this; on databases that have none, do nothing."""
    dialect = connection.dialect
    if dialect.name == "postgresql":
        connection.execute(_ALONE, {"idle": str(idle_ms)})
    elif getattr(dialect, "is_mariadb", False) and connection.info.get(_TOLD) != idle_ms:
        connection.exec_driver_sql(f"{_TELL}{-(-idle_ms // 1000)}")
        connection.info[_TOLD] = idle_ms


def restore(engine: Engine) -> None:
    """Have connections of an engine that is not the inbox's go back to it as they were, from now on."""
    if not event.contains(engine, "checkin", _given_back):
        event.listen(engine, "checkin", _given_back)


def _given_back(connection: DBAPIConnection | None, record: ConnectionPoolEntry) -> None:
    if record.info.pop(_TOLD, None) is None or connection is None:
        return
    try:
        with closing(connection.cursor()) as cursor:
            cursor.execute(_RESTORE)
    except Exception as error:  # what was committed with it stands; the pool makes another
        record.invalidate(error)
