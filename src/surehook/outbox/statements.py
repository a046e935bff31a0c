"""Statements that write a row, in the dialect of a database and the marks of a driver."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, TypeAlias

from surehook.core.outbox import COLUMNS
from surehook.core.outbox_tables import Dialect

# How a driver marks a parameter: ?, %s or $1.
Marks = Literal["qmark", "format", "dollar"]
Statement: TypeAlias = tuple[str, Sequence[object]]

_SEQUENCE = COLUMNS.index("sequence")


def insert(table: str, dialect: Dialect, marks: Marks, row: Sequence[object]) -> list[Statement]:
    """Insert a row, given as the values of `COLUMNS`."""
    return [(_insert(table, marks), row)]


def insert_numbered(
    table: str, dialect: Dialect, marks: Marks, row: Sequence[object], keys: Sequence[object]
) -> list[Statement]:
    """Raise the number of a subject, whose `keys` are tenant and subject, and insert a row with it: one statement on
    PostgreSQL, two elsewhere. Who numbers the same subject in another transaction waits for the end of this one."""
    values = (*row[:_SEQUENCE], *row[_SEQUENCE + 1 :])
    if dialect == "postgresql":
        return [(_numbered(table, marks), (*keys, *values))]
    raising, inserting = _raised(table, dialect, marks)
    return [(raising, keys), (inserting, (*values, *keys))]


@lru_cache(maxsize=64)
def _insert(table: str, marks: Marks) -> str:
    values = ", ".join(_marks(marks, len(COLUMNS)))
    return f"INSERT INTO {table} ({', '.join(COLUMNS)}) VALUES ({values})"


@lru_cache(maxsize=64)
def _numbered(table: str, marks: Marks) -> str:
    tenant, subject, *values = _marks(marks, len(COLUMNS) + 1)
    values[-1] += "::bigint"  # `created_at`: of a parameter that is selected PostgreSQL makes text
    row = [*values[:_SEQUENCE], "last", *values[_SEQUENCE:]]
    return (
        f"WITH numbered AS (INSERT INTO {table}_sequence AS here (tenant, subject, last) "
        f"VALUES ({tenant}, {subject}, 1) ON CONFLICT (tenant, subject) DO UPDATE SET last = here.last + 1 "
        f"RETURNING last) INSERT INTO {table} ({', '.join(COLUMNS)}) SELECT {', '.join(row)} FROM numbered"
    )


@lru_cache(maxsize=64)
def _raised(table: str, dialect: Dialect, marks: Marks) -> tuple[str, str]:
    tenant, subject, *values = _marks(marks, len(COLUMNS) + 1)
    row = [*values[:_SEQUENCE], "last", *values[_SEQUENCE:]]
    conflict = (
        "ON DUPLICATE KEY UPDATE last = last + 1"
        if dialect == "mysql"
        else "ON CONFLICT (tenant, subject) DO UPDATE SET last = last + 1"
    )
    return (
        f"INSERT INTO {table}_sequence (tenant, subject, last) VALUES ({tenant}, {subject}, 1) {conflict}",
        f"INSERT INTO {table} ({', '.join(COLUMNS)}) SELECT {', '.join(row)} FROM {table}_sequence "
        f"WHERE tenant = {tenant} AND subject = {subject}",
    )


def _marks(marks: Marks, count: int) -> list[str]:
    if marks == "dollar":
        return [f"${number}" for number in range(1, count + 1)]
    return ["?" if marks == "qmark" else "%s"] * count
