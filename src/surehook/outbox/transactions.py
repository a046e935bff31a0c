"""The transaction of an application, whatever library it is held by.

| library | what is handed in |
|---|---|
| `sqlite3` | Connection, Cursor |
| psycopg 3, psycopg2 | connection, cursor |
| PyMySQL | connection |
| SQLAlchemy | Session, Connection, scoped_session |
| Django | `connection`, or `connections["name"]` |
| asyncpg (awaited) | Connection, also one that a pool has lent |
| psycopg 3 (awaited) | AsyncConnection, AsyncCursor |
| SQLAlchemy (awaited) | AsyncSession, AsyncConnection, async_scoped_session |
| aiosqlite, asyncmy (awaited) | Connection |

Nothing of these is imported: an object is told by the module of its class. One that commits each statement by itself is
refused, since the row would be published whether or not the application's own change is kept.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from surehook.core.errors import Problem
from surehook.core.outbox_tables import Dialect
from surehook.outbox.statements import Marks

# An object of a library that is not imported here, or what its calls return.
Foreign: TypeAlias = Any
Parameters: TypeAlias = Sequence[object]
T = TypeVar("T")


class BlockingTransaction(NamedTuple):
    """Statements in a transaction: their dialect, their marks, and the call that runs one."""

    dialect: Dialect
    marks: Marks
    run: Callable[[str, Parameters], Foreign]


class AwaitedTransaction(NamedTuple):
    """`BlockingTransaction`, whose call is awaited."""

    dialect: Dialect
    marks: Marks
    run: Callable[[str, Parameters], Awaitable[Foreign]]


def blocking(tx: Foreign) -> BlockingTransaction:
    """The way to run statements in `tx`. Raises Problem `unknown_transaction`, `not_blocking`, `no_transaction`."""
    made = _found(tx, _BLOCKING)
    if made is None:
        if _found(tx, _AWAITED) is not None:
            raise Problem(
                "not_blocking", f"{_name(tx)} is to be awaited", field="tx", hint="await outbox.aput(tx, …)"
            )
        raise _unknown(tx)
    return made(tx)


async def awaited(tx: Foreign) -> AwaitedTransaction:
    """`blocking` for a library that is awaited. Raises Problem `unknown_transaction`, `not_awaitable`, `no_transaction`."""
    made = _found(tx, _AWAITED)
    if made is None:
        if _found(tx, _BLOCKING) is not None:
            raise Problem(
                "not_awaitable", f"{_name(tx)} is not awaited", field="tx", hint="outbox.put(tx, …)"
            )
        raise _unknown(tx)
    return await made(tx)


def _found(tx: Foreign, kinds: Mapping[str, T]) -> T | None:
    """The entry of the first class, from its own to its bases, that has one."""
    for kind in type(tx).__mro__:
        made = kinds.get(f"{kind.__module__.partition('.')[0].lstrip('_')}.{kind.__name__}")
        if made is not None:
            return made
    return None


def _name(tx: Foreign) -> str:
    return f"{type(tx).__module__}.{type(tx).__name__}"


def _unknown(tx: Foreign) -> Problem:
    return Problem(
        "unknown_transaction",
        f"{_name(tx)} is no transaction or connection that surehook knows",
        field="tx",
        hint="hand in the connection or session in whose transaction your own rows are written",
    )


def _none(name: str) -> Problem:
    return Problem(
        "no_transaction",
        "this connection commits each statement by itself, so the event could be sent although your change is not kept",
        field="tx",
        hint=name,
    )


def _connection(tx: Foreign) -> Foreign:
    """The connection of a cursor, or itself. A statement by the cursor would end the rows that the application reads from it."""
    return getattr(tx, "connection", tx)


# -- blocking ---------------------------------------------------------------------------------------------


def _sqlite3(tx: Foreign) -> BlockingTransaction:
    connection = _connection(tx)
    _check_sqlite(connection)
    return BlockingTransaction("sqlite", "qmark", connection.execute)


def _check_sqlite(connection: Foreign) -> None:
    commits = connection.isolation_level is None or getattr(connection, "autocommit", -1) is True
    if commits and not connection.in_transaction:
        raise _none('connection.execute("BEGIN") first')


def _psycopg(tx: Foreign) -> BlockingTransaction:
    connection = _connection(tx)
    _check_psycopg(connection)
    return BlockingTransaction("postgresql", "format", connection.execute)


def _check_psycopg(connection: Foreign) -> None:
    if connection.autocommit and connection.info.transaction_status == 0:
        raise _none("with connection.transaction(): …")


def _psycopg2(tx: Foreign) -> BlockingTransaction:
    connection = _connection(tx)
    if connection.autocommit and connection.info.transaction_status == 0:
        raise _none("connection.autocommit = False")
    return BlockingTransaction("postgresql", "format", _cursor(connection))


def _mysql(tx: Foreign) -> BlockingTransaction:
    # 1: SERVER_STATUS_IN_TRANS of the last answer.
    if tx.get_autocommit() and not tx.server_status & 1:
        raise _none("connection.begin() first")
    return BlockingTransaction("mysql", "format", _cursor(tx))


def _cursor(connection: Foreign) -> Callable[[str, Parameters], None]:
    def run(sql: str, parameters: Parameters) -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)

    return run


def _django(tx: Foreign) -> BlockingTransaction:
    if tx.get_autocommit():
        raise _none("with transaction.atomic(): …")
    return BlockingTransaction(tx.vendor, "format", _cursor(tx))


def _session(tx: Foreign) -> BlockingTransaction:
    return _sqlalchemy(tx.connection())


def _sqlalchemy(connection: Foreign) -> BlockingTransaction:
    dialect, marks = _dialect(connection)
    driver = connection.connection.driver_connection  # may commit each statement without SQLAlchemy's knowing
    checks = _CHECKS.get(type(driver).__module__.partition(".")[0])
    if checks is not None:
        checks(driver)
    return BlockingTransaction(dialect, marks, connection.exec_driver_sql)


def _dialect(connection: Foreign) -> tuple[Dialect, Marks]:
    dialect = connection.dialect
    if connection._is_autocommit_isolation():
        raise _none("an engine or session without isolation_level AUTOCOMMIT")
    return _NAMES.get(dialect.name, dialect.name), _MARKS[dialect.paramstyle]


# -- awaited ----------------------------------------------------------------------------------------------


async def _asyncpg(tx: Foreign) -> AwaitedTransaction:
    if not tx.is_in_transaction():
        raise _none("async with connection.transaction(): …")

    async def run(sql: str, parameters: Parameters) -> None:
        await tx.execute(sql, *parameters)

    return AwaitedTransaction("postgresql", "dollar", run)


async def _async_psycopg(tx: Foreign) -> AwaitedTransaction:
    connection = _connection(tx)
    _check_psycopg(connection)
    return AwaitedTransaction("postgresql", "format", connection.execute)


async def _async_session(tx: Foreign) -> AwaitedTransaction:
    return await _async_sqlalchemy(await tx.connection())


async def _async_sqlalchemy(connection: Foreign) -> AwaitedTransaction:
    dialect, marks = _dialect(connection.sync_connection)
    return AwaitedTransaction(dialect, marks, connection.exec_driver_sql)


async def _aiosqlite(tx: Foreign) -> AwaitedTransaction:
    await tx._execute(_check_sqlite, tx._conn)  # in its thread, since a connection tells no other one

    async def run(sql: str, parameters: Parameters) -> None:
        await (await tx.execute(sql, parameters)).close()

    return AwaitedTransaction("sqlite", "qmark", run)


async def _asyncmy(tx: Foreign) -> AwaitedTransaction:
    if tx.get_autocommit() and not tx.get_transaction_status():
        raise _none("await connection.begin() first")

    async def run(sql: str, parameters: Parameters) -> None:
        async with tx.cursor() as cursor:
            await cursor.execute(sql, parameters)

    return AwaitedTransaction("mysql", "format", run)


_CHECKS: dict[str, Callable[[Foreign], None]] = {"sqlite3": _check_sqlite, "psycopg": _check_psycopg}
_NAMES: dict[str, Dialect] = {"mariadb": "mysql"}
_MARKS: dict[str, Marks] = {
    "qmark": "qmark", "format": "format", "pyformat": "format", "numeric_dollar": "dollar",
}  # fmt: skip
_BLOCKING: dict[str, Callable[[Foreign], BlockingTransaction]] = {
    "sqlite3.Connection": _sqlite3,
    "sqlite3.Cursor": _sqlite3,
    "psycopg.Connection": _psycopg,
    "psycopg.Cursor": _psycopg,
    "psycopg2.connection": _psycopg2,
    "psycopg2.cursor": _psycopg2,
    "pymysql.Connection": _mysql,
    "sqlalchemy.Session": _session,
    "sqlalchemy.scoped_session": _session,
    "sqlalchemy.Connection": _sqlalchemy,
    "django.BaseDatabaseWrapper": _django,
    "django.ConnectionProxy": _django,
}
_AWAITED: dict[str, Callable[[Foreign], Awaitable[AwaitedTransaction]]] = {
    "asyncpg.Connection": _asyncpg,
    "asyncpg.PoolConnectionProxy": _asyncpg,
    "psycopg.AsyncConnection": _async_psycopg,
    "psycopg.AsyncCursor": _async_psycopg,
    "sqlalchemy.AsyncSession": _async_session,
    "sqlalchemy.async_scoped_session": _async_session,
    "sqlalchemy.AsyncConnection": _async_sqlalchemy,
    "aiosqlite.Connection": _aiosqlite,
    "asyncmy.Connection": _asyncmy,
}
