"""The tables in plain words, for whoever declares them a second time: the models of an ORM."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from sqlalchemy import BigInteger, Boolean, Integer, LargeBinary, SmallInteger, String, Text

from surehook.inbox.sql.tables import PREFIX, metadata

Kind = Literal["bytes", "text", "long_text", "big", "integer", "small", "yes_no"]

# The narrower before the wider: a Text is a String, a BigInteger an Integer.
_KINDS: tuple[tuple[type, Kind], ...] = (
    (LargeBinary, "bytes"),
    (Text, "long_text"),
    (String, "text"),
    (Boolean, "yes_no"),
    (BigInteger, "big"),
    (SmallInteger, "small"),
    (Integer, "integer"),
)


class Described(Struct, frozen=True):
    """One column; `length` in characters or bytes where it is bounded."""

    name: str
    kind: Kind
    length: int | None
    nullable: bool


def names() -> list[str]:
    """Name the tables, without their prefix, in the order in which they are made."""
    return [table.name.removeprefix(PREFIX) for table in metadata.sorted_tables]


def columns(name: str) -> list[Described]:
    """Describe the columns of a table."""
    return [
        Described(
            column.name,
            next(kind for type_, kind in _KINDS if isinstance(column.type, type_)),
            getattr(column.type, "length", None),
            bool(column.nullable),
        )
        for column in metadata.tables[PREFIX + name].columns
    ]


def key(name: str) -> list[str]:
    """Name the columns of a table's primary key."""
    return [column.name for column in metadata.tables[PREFIX + name].primary_key]
