"""The receivers' database: one SQLite in memory, which outlives every process of its world."""

from __future__ import annotations

import sqlite3
from functools import cache
from typing import Any

from sqlalchemy import Engine, create_engine
from sqlalchemy.pool import StaticPool

from surehook.inbox.sql.stores import SqlStore

# What handlers do: one row for each time one of them ran to its end, in the transaction of the run.
_EFFECTS = """
create table effects (
    id integer primary key, event_id text not null, replay integer not null, handler text not null, document text,
    sequence integer, before text, after text
)
"""


@cache
def _prepared() -> tuple[Engine, SqlStore, bytes]:
    """An engine that all worlds of this process use after each other (it remembers compiled statements), its store, and the
    image of an empty database."""
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    store = SqlStore(engine)
    store.create()
    connection = _connection(engine)
    connection.execute(_EFFECTS)
    return engine, store, connection.serialize()


def _connection(engine: Engine) -> sqlite3.Connection:
    fairy = engine.raw_connection()
    connection = fairy.driver_connection
    fairy.close()
    assert isinstance(connection, sqlite3.Connection)
    return connection


class Database:
    """An empty database. There is one at a time in a process; `close` ends it."""

    def __init__(self) -> None:
        self._engine, self.store, empty = _prepared()
        self._engine.dispose()
        self._connection = _connection(self._engine)
        self._connection.deserialize(empty)

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Result of a statement of the world's own between two transactions."""
        return self._connection.execute(statement, values).fetchall()

    def count(self, statement: str, *values: Any) -> int:
        found: int = self.rows(statement, *values)[0][0]
        return found

    def close(self) -> None:
        self._engine.dispose()
