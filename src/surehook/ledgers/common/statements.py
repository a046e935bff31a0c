"""The steps of work that is written once for every SQL ledger: it yields them, is sent rows, and returns its answer.

Reading work yields statements. Work that changes the configuration may also yield a `Note` of what it has changed, at
which the ledger raises the version: the one place where it goes up (but for `record`). A change of a single row is one
`Noted`, which needs no transaction around it.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

R = TypeVar("R")


class Row(Protocol):
    """A tuple, or the driver's equivalent."""

    def __getitem__(self, place: int, /) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...


class Statement(NamedTuple):
    """SQL with a `?` for each parameter."""

    sql: str
    parameters: Sequence[object] = ()


class Query(NamedTuple):
    """A statement of the ledger's own `queries/NAME.sql`."""

    name: str
    parameters: Sequence[object] = ()


class ByKeys(NamedTuple):
    """A statement of the ledger's own `queries/NAME.sql` that finds rows by any number of keys."""

    name: str
    keys: Sequence[object]


class Note(NamedTuple):
    """The row that was changed: its table, and its key as bytes."""

    kind: str
    key: bytes


class Noted(NamedTuple):
    """A statement that changes one row, the columns to return of it, and the note to write if there is such a row."""

    sql: str
    returning: str
    parameters: Sequence[object]
    note: Note


class DataRefused(Exception):
    """Thrown into a change: the database does not accept the data of the statement it yielded."""


ReadingStep: TypeAlias = Statement | Query | ByKeys
ChangingStep: TypeAlias = Statement | Note | Noted
Reading: TypeAlias = Generator[ReadingStep, Sequence[Row], R]
Changing: TypeAlias = Generator[ChangingStep, Sequence[Row], R]


_COMMENT = re.compile(r"--[^\n]*")


def read_text(package: str, *path: str) -> str:
    """Read a file of a package's `queries/` as one line, without comments."""
    text = files(package).joinpath("queries", *path).read_text()
    return " ".join(_COMMENT.sub("", text).split())


def names(package: str) -> list[str]:
    """List the statements of a package's `queries/`."""
    found = [file.name for file in files(package).joinpath("queries").iterdir()]
    return [name.removesuffix(".sql") for name in found if name.endswith(".sql")]


@cache
def shared(name: str) -> str:
    """Return the text of `queries/NAME.sql` beside this file, which every ledger takes, with a `?` for each parameter."""
    return read_text(__package__, f"{name}.sql")


def read_shared() -> None:
    """Read every shared statement now: once no descriptor is left, a file can no longer be opened."""
    for name in names(__package__):
        shared(name)
