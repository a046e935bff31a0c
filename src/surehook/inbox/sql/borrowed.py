"""SQLAlchemy on connections that are somebody else's: a framework opened them, begins, commits, and closes them.

The statements of this room run inside the framework's transaction, on its own connection. SQLAlchemy is given the driver's
connection as it is, by dialects that leave undone what only an owner may do: begin, commit, roll back, close, set up. What the
owner's set-up gives a connection (types that are read in another way, say) does not matter to these tables, which hold bytes,
texts and integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine, create_engine
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.mysql.mysqldb import MySQLDialect_mysqldb
from sqlalchemy.dialects.mysql.pymysql import MySQLDialect_pymysql
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.postgresql.psycopg2 import PGDialect_psycopg2
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from surehook.core.errors import SettingsError


class _Borrowed:
    """A connection of the application, protected from what an owner would do to it."""

    def on_connect(self) -> None:
        return None

    def do_begin(self, connection: object) -> None: ...

    def do_commit(self, connection: object) -> None: ...

    def do_rollback(self, connection: object) -> None: ...

    def do_close(self, connection: object) -> None: ...

    def do_terminate(self, connection: object) -> None: ...


class Sqlite(_Borrowed, SQLiteDialect_pysqlite):  # type: ignore[misc]
    supports_statement_cache = True


class Psycopg(_Borrowed, PGDialect_psycopg):
    supports_statement_cache = True


class Psycopg2(_Borrowed, PGDialect_psycopg2):
    supports_statement_cache = True


class MySqlDb(_Borrowed, MySQLDialect_mysqldb):  # type: ignore[misc]
    supports_statement_cache = True


class PyMySql(_Borrowed, MySQLDialect_pymysql):  # type: ignore[misc]
    supports_statement_cache = True


# The driver's module → its dialect, and what it is told not to look for: types that these tables do not have.
_BY_DRIVER: dict[str, tuple[str, type[Any], dict[str, Any]]] = {
    "sqlite3": ("sqlite", Sqlite, {}),
    "psycopg": ("postgresql", Psycopg, {"use_native_hstore": False}),
    "psycopg2": ("postgresql", Psycopg2, {"use_native_hstore": False}),
    "MySQLdb": ("mysql", MySqlDb, {}),
    "pymysql": ("mysql", PyMySql, {}),
}
for _name, (_database, _dialect, _) in _BY_DRIVER.items():
    registry.register(f"{_database}.borrowed_{_name.lower()}", __name__, _dialect.__name__)


def engine(driver: str, lend: Callable[[], object]) -> Engine:
    """Make an engine whose connections are what `lend()` returns at that moment: of this driver, in a transaction of its owner.

    Raises SettingsError for a driver that the tables do not know.
    """
    if driver not in _BY_DRIVER:
        raise SettingsError("database", f"the inbox does not know {driver}", hint=", ".join(_BY_DRIVER))
    database, _, options = _BY_DRIVER[driver]
    url = f"{database}+borrowed_{driver.lower()}://"
    return create_engine(url, creator=lend, poolclass=NullPool, **options)


def wrapped(engine: Engine, error: BaseException) -> BaseException:
    """Wrap an error of the driver as SQLAlchemy would have, had it been its own connection."""
    dialect = engine.dialect
    return DBAPIError.instance(None, None, error, dialect.loaded_dbapi.Error, dialect=dialect)
