"""Many rows in one call of the driver, past what SQLAlchemy does for each parameter of each row.

That work (names to places, a processor for each value) costs more than the database does for a row. So the statements of
batches are written here, and rows go to the driver as tuples in the order of its places:

    PostgreSQL  one statement with one array for each column: `executemany` would be a message for each row
    SQLite      statements of 64, 16, 4 and 1 rows: `executemany` lets go of the interpreter at each row, and a thread that
                writes beside a busy event loop then waits for it each time
    MySQL       `executemany`, which its drivers make one statement of

Values are those that drivers take as they are: None, bool, int, str, bytes. Errors are SQLAlchemy's as anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

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

from surehook.inbox.sql.idle_timeout import StoreBounds

Row = tuple[Any, ...]

ARRAYS = ("asyncpg", "psycopg")  # drivers that take lists for arrays
UNCOUNTED = "psycopg2"  # it may send several statements at a time, and then tells of the last
WRITTEN = "psycopg"  # the one of them to which arrays of bytes are given as text
_STEPS = (64, 16, 4, 1)  # rows of one statement on SQLite
_PARAMETERS = 999  # of one statement: the bound of old SQLite builds
_MEMO = 64  # texts: about ten for each dialect of a program


class Rows(NamedTuple):
    """Rows for a table, their values in the order of `columns`."""

    table: Table
    columns: tuple[str, ...]
    rows: Sequence[Row]


def insert_rows(connection: Connection, *given: Rows, bounds: StoreBounds | None = None) -> None:
    """Insert rows into one table or several, in this order; where arrays are taken, by one statement in all, which tells of the
    transaction's bounds."""
    parts = [one for one in given if one.rows]
    if not parts:
        return
    dialect = connection.dialect
    if dialect.driver in ARRAYS:
        statement = _insert_all(dialect, tuple((one.table, one.columns) for one in parts), bounds)
        connection.exec_driver_sql(
            statement, tuple(column for one in parts for column in _turned(dialect, one))
        )
    elif dialect.name == "sqlite":
        for table, columns, rows in parts:
            for some in _portions(rows, len(columns)):
                statement = _insert(dialect, table, columns, len(some))
                connection.exec_driver_sql(statement, tuple(chain.from_iterable(some)))
    else:
        for table, columns, rows in parts:
            connection.exec_driver_sql(_insert(dialect, table, columns), list(rows))


def insert_missing(connection: Connection, given: Rows) -> None:
    """Insert the rows whose keys are not there. Arrays are taken: elsewhere `insert` of the dialect says it."""
    statement = f"{_insert_all(connection.dialect, ((given.table, given.columns),))} ON CONFLICT DO NOTHING"
    connection.exec_driver_sql(statement, tuple(_turned(connection.dialect, given)))


def update_rows(
    connection: Connection, table: Table, columns: tuple[str, ...], keys: tuple[str, ...], rows: Sequence[Row]
) -> int:
    """Give `columns` new values where `keys` have theirs; a row is the new values, and then those of the keys. Returns how many
    rows there were, as the driver says."""
    if not rows:
        return 0
    dialect = connection.dialect
    arrays = dialect.driver in ARRAYS
    given = tuple(_turned(dialect, Rows(table, (*columns, *keys), rows))) if arrays else list(rows)
    found = connection.exec_driver_sql(_update(dialect, table, columns, keys), given).rowcount
    return len(rows) if dialect.driver == UNCOUNTED else found


def byte_array(values: Iterable[bytes | None]) -> str:
    """Write an array of bytes as PostgreSQL's text. psycopg's own text of one has each backslash twice where
    `standard_conforming_strings` is off, and what is stored then is that text."""
    texts = ("NULL" if one is None else f'"\\\\x{one.hex()}"' for one in values)
    return f"{{{','.join(texts)}}}"


def _turned(dialect: Dialect, given: Rows) -> list[list[object] | str]:
    """Turn rows into one array for each column."""
    columns = zip(*given.rows, strict=True)
    if dialect.driver != WRITTEN:
        return [list(column) for column in columns]
    are_bytes = (isinstance(given.table.c[name].type, LargeBinary) for name in given.columns)
    return [
        byte_array(column) if is_bytes else list(column)
        for is_bytes, column in zip(are_bytes, columns, strict=True)
    ]


def _portions(rows: Sequence[Row], width: int) -> Iterator[Sequence[Row]]:
    """Divide rows into portions of few sizes, so that few texts are prepared."""
    at = 0
    for size in _STEPS:
        while size * width <= _PARAMETERS and len(rows) - at >= size:
            yield rows[at : at + size]
            at += size


@lru_cache(maxsize=_MEMO)
def _insert(dialect: Dialect, table: Table, columns: tuple[str, ...], rows: int = 1) -> str:
    row = f"({', '.join(_places(dialect, len(columns)))})"
    return f"{_into(dialect, table, columns)} VALUES {', '.join([row] * rows)}"


@lru_cache(maxsize=_MEMO)
def _insert_all(
    dialect: Dialect, parts: tuple[tuple[Table, tuple[str, ...]], ...], bounds: StoreBounds | None = None
) -> str:
    """Write one statement: all but the last stand in a WITH, since a round trip costs more than an INSERT. Each tells
    the bounds: which of them runs first is the database's choice."""
    texts, at = [], 0
    told = f" WHERE {bounds.condition}" if bounds else ""
    for table, columns in parts:
        texts.append(
            f"{_into(dialect, table, columns)} SELECT * FROM unnest({_arrays(dialect, table, columns, at)}){told}"
        )
        at += len(columns)
    before = ", ".join(f"part{number} AS ({text})" for number, text in enumerate(texts[:-1]))
    return f"WITH {before} {texts[-1]}" if before else texts[-1]


def _into(dialect: Dialect, table: Table, columns: tuple[str, ...]) -> str:
    return f"INSERT INTO {table.name} ({', '.join(_quoted(dialect, columns))})"


@lru_cache(maxsize=_MEMO)
def _update(dialect: Dialect, table: Table, columns: tuple[str, ...], keys: tuple[str, ...]) -> str:
    changed, fixed = _quoted(dialect, columns), _quoted(dialect, keys)
    if dialect.driver in ARRAYS:
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


def _places(dialect: Dialect, count: int, after: int = 0) -> list[str]:
    """Write the driver's placeholders, `after` others; those with names (`pyformat`) take tuples too."""
    if dialect.paramstyle == "numeric_dollar":
        return [f"${place}" for place in range(after + 1, after + count + 1)]
    return ["?" if dialect.paramstyle == "qmark" else "%s"] * count


def _arrays(dialect: Dialect, table: Table, columns: Sequence[str], after: int = 0) -> str:
    pairs = zip(_places(dialect, len(columns), after), columns, strict=True)
    return ", ".join(f"{place}::{_element(table.c[name])}[]" for place, name in pairs)


def _element(column: Column[Any]) -> str:
    """Name a column's type for an array. Texts have none of a length: a cast to varchar(n) would cut them silently."""
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
