"""Work on a database as a generator: it yields statements, is sent their rows, and returns its answer.

So one text of a list serves a ledger that runs on a thread and one that awaits, and neither the transaction nor the
connection is its affair: whoever follows the steps has begun the one (a snapshot) and owns the other.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from sqlalchemy import ClauseElement

R = TypeVar("R")


class Row(Protocol):
    """A tuple, or what a driver has in its place."""

    def __getitem__(self, place: int, /) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...


Steps: TypeAlias = Generator[ClauseElement, Sequence[Row], R]
