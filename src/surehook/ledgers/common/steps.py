"""Lists as generators of SQLAlchemy statements: they yield them, are sent rows, and return a page.

So one text of a list serves a ledger that runs on a thread and one that awaits. The ledger begins the snapshot, owns the
connection and compiles each statement for its dialect.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from sqlalchemy import ClauseElement

from surehook.ledgers.common.statements import Row

__all__ = ["Again", "Row", "Statement", "Steps"]

R = TypeVar("R")


class Again(NamedTuple):
    """A statement that is run many times, with this run's values of its named parameters: it is compiled once."""

    statement: ClauseElement
    values: Mapping[str, object]


Statement: TypeAlias = ClauseElement | Again
Steps: TypeAlias = Generator[Statement, Sequence[Row], R]
