"""Work on a database as a generator: it yields statements, is sent their rows, and returns its answer.

So one text of a list serves a ledger that runs on a thread and one that awaits, and neither the transaction nor the
connection is its affair: whoever follows the steps has begun the one (a snapshot) and owns the other.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from sqlalchemy import ClauseElement

R = TypeVar("R")


class Row(Protocol):
    """A tuple, or what a driver has in its place."""

    def __getitem__(self, place: int, /) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...


class Again(NamedTuple):
    """A statement that is run many times, and the values of its named places this time: it is put into words once."""

    statement: ClauseElement
    values: Mapping[str, Any]


Statement: TypeAlias = ClauseElement | Again
Steps: TypeAlias = Generator[Statement, Sequence[Row], R]
