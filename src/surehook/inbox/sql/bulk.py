"""Many rows in one call of the driver, past what SQLAlchemy does for each parameter of each row.

That work (names to places, a processor for each value) costs more than the database does for a row. So the statements of
batches are written here, and rows go to the driver as tuples in the order of its places:

    PostgreSQL     one statement with one array for each column: `executemany` would be a message for each row
    SQLite, MySQL  `executemany`, which their drivers do in C or as one statement

Values are those that drivers take as they are: None, bool, int, str, bytes. Errors are SQLAlchemy's as anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Dialect,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
)

Row = tuple[Any, ...]

_ARRAYS = ("asyncpg", "psycopg")  # drivers that take lists for arrays
_MEMO = 64  # texts: about ten for each dialect of a program


def insert_rows(connection: Connection, table: Table, columns: tuple[str, ...], rows: Sequence[Row]) -> None:
    """Insert rows whose values are in the order of `columns`."""
    if rows:
        _run(connection, _insert(connection.dialect, table, columns), rows)


def update_rows(
    connection: Connection, table: Table, columns: tuple[str, ...], keys: tuple[str, ...], rows: Sequence[Row]
) -> None:
    """Give `columns` new values where `keys` have theirs; a row is the new values, and then those of the keys."""
    if rows:
        _run(connection, _update(connection.dialect, table, columns, keys), rows)


def _run(connection: Connection, statement: str, rows: Sequence[Row]) -> None:
    if connection.dialect.driver in _ARRAYS:
        connection.exec_driver_sql(statement, tuple(map(list, zip(*rows, strict=True))))
    else:
        connection.exec_driver_sql(statement, list(rows))


@lru_cache(maxsize=_MEMO)
def _insert(dialect: Dialect, table: Table, columns: tuple[str, ...]) -> str:
    head = f"INSERT INTO {table.name} ({', '.join(_quoted(dialect, columns))})"
    if dialect.driver in _ARRAYS:
        return f"{head} SELECT * FROM unnest({_arrays(dialect, table, columns)})"
    return f"{head} VALUES ({', '.join(_places(dialect, len(columns)))})"


@lru_cache(maxsize=_MEMO)
def _update(dialect: Dialect, table: Table, columns: tuple[str, ...], keys: tuple[str, ...]) -> str:
    changed, fixed = _quoted(dialect, columns), _quoted(dialect, keys)
    if dialect.driver in _ARRAYS:
        values = ", ".join(f"{name} = given.{name}" for name in changed)
        fits = " AND ".join(f"{table.name}.{name} = given.{name}" for name in fixed)
        given = _arrays(dialect, table, (*columns, *keys))
        names = ", ".join((*changed, *fixed))
        return f"UPDATE {table.name} SET {values} FROM unnest({given}) AS given ({names}) WHERE {fits}"
    places = _places(dialect, len(columns) + len(keys))
    values = ", ".join(f"{name} = {place}" for name, place in zip(changed, places, strict=False))
    fits = " AND ".join(
        f"{name} = {place}" for name, place in zip(fixed, places[len(columns) :], strict=True)
    )
    return f"UPDATE {table.name} SET {values} WHERE {fits}"


def _quoted(dialect: Dialect, names: Sequence[str]) -> list[str]:
    return [dialect.identifier_preparer.quote(name) for name in names]


def _places(dialect: Dialect, count: int) -> list[str]:
    """How the driver writes its places; those with names (`pyformat`) take tuples too."""
    if dialect.paramstyle == "numeric_dollar":
        return [f"${place}" for place in range(1, count + 1)]
    return ["?" if dialect.paramstyle == "qmark" else "%s"] * count


def _arrays(dialect: Dialect, table: Table, columns: Sequence[str]) -> str:
    pairs = zip(_places(dialect, len(columns)), columns, strict=True)
    return ", ".join(f"{place}::{_element(table.c[name])}[]" for place, name in pairs)


def _element(column: Column[Any]) -> str:
    """Its type for an array. Of texts the length is left to the column: a cast to varchar(n) would cut them silently."""
    kind = column.type
    if isinstance(kind, LargeBinary):
        return "bytea"
    if isinstance(kind, Boolean):
        return "boolean"
    if isinstance(kind, BigInteger):
        return "bigint"
    if isinstance(kind, SmallInteger):
        return "smallint"
    return "integer" if isinstance(kind, Integer) else "text"
