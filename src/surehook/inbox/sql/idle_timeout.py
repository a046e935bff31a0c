"""The bound on an idle transaction, which the database enforces: a process that freezes with rows locked would keep
them from all others for ever.

PostgreSQL is told in the transaction, which is safe behind a pooler. The statement that claims, or holds what was claimed, tells
it by the way; others are told before the first statement. MariaDB knows no such bound of one transaction: it is told for the
session, once for each connection of an engine that the inbox made, and with each use of a connection that is the application's,
which gets back what it had.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

from sqlalchemy import Connection, Engine, bindparam, event, func, select
from sqlalchemy.types import String

# A column for statements that lock rows, of value `idle`. Uncorrelated: it is done once, whatever the number of rows.
BY_THE_WAY = select(
    func.set_config("idle_in_transaction_session_timeout", bindparam("idle", type_=String), True)
).scalar_subquery()

_TOLD = "surehook_inbox_idle"  # in a connection's `info`: what MariaDB was told
_TELL = "SET @surehook_idle = @@SESSION.idle_transaction_timeout, SESSION idle_transaction_timeout = "
_RESTORE = "SET SESSION idle_transaction_timeout = @surehook_idle"


def bind(connection: Connection, idle_ms: int) -> None:
    """Set the bound for the transaction that is open, or opens with this; on databases that have none, do nothing."""
    dialect: Any = connection.dialect
    if dialect.name == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL idle_in_transaction_session_timeout = {idle_ms}")
    elif getattr(dialect, "is_mariadb", False) and connection.info.get(_TOLD) != idle_ms:
        connection.exec_driver_sql(f"{_TELL}{-(-idle_ms // 1000)}")
        connection.info[_TOLD] = idle_ms


def restore(engine: Engine) -> None:
    """Have connections of an engine that is not the inbox's go back to it as they were, from now on."""
    if not event.contains(engine, "checkin", _given_back):
        event.listen(engine, "checkin", _given_back)


def _given_back(connection: Any, record: Any) -> None:
    if record.info.pop(_TOLD, None) is None or connection is None:
        return
    try:
        with closing(connection.cursor()) as cursor:
            cursor.execute(_RESTORE)
    except Exception as error:  # what was committed with it stands; the pool makes another
        record.invalidate(error)
