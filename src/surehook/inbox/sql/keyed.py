"""Rows by keys of several columns, read through the index of these columns on each database.

`(a, b, c) IN (…)` with the keys written out is an index lookup for each key on MariaDB only. SQLite reads the whole index from
the second key on, and PostgreSQL all that share the first columns, until it has statistics. So keys are given to SQLite as one
JSON text and to PostgreSQL as an array for each column: a subquery, for each row of which the index is asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import (
    ARRAY,
    Column,
    ColumnElement,
    Connection,
    Dialect,
    Executable,
    Text,
    bindparam,
    func,
    select,
    tuple_,
)

from surehook.inbox.sql.bulk import ARRAYS

Key = tuple[str, ...]


class Keyed:
    """A statement about the rows whose `columns`, texts of one unique index, are one of some keys: once for each way of giving
    keys. `make` makes it of the condition; it is made once, since making it costs more than it does."""

    def __init__(
        self, columns: Sequence[Column[str]], make: Callable[[ColumnElement[bool]], Executable]
    ) -> None:
        self._names = [column.name for column in columns]
        key = tuple_(*columns)
        places = func.json_each(bindparam("keys", type_=Text)).table_valued("value")
        parts = (func.json_extract(places.c.value, f"$[{place}]") for place in range(len(columns)))
        self._in_json = make(key.in_(select(*parts)))
        arrays = (func.unnest(bindparam(name, type_=ARRAY(Text))) for name in self._names)
        self._in_arrays = make(key.in_(select(*arrays)))
        self._in_list = make(key.in_(bindparam("keys", expanding=True)))

    def rows(self, connection: Connection, keys: Sequence[Key], **values: object) -> Sequence[Any]:
        """Find the rows of these keys; `values` are the statement's other ones."""
        if not keys:
            return ()
        statement, given = self._given(connection.dialect, keys)
        return connection.execute(statement, given | values).all()

    def _given(self, dialect: Dialect, keys: Sequence[Key]) -> tuple[Executable, dict[str, object]]:
        if dialect.driver in ARRAYS:
            columns = map(list, zip(*keys, strict=True))
            return self._in_arrays, dict(zip(self._names, columns, strict=True))
        if dialect.name == "sqlite":
            return self._in_json, {"keys": json.dumps(keys)}
        return self._in_list, {"keys": list(keys)}
