"""One page of a list: a span of ids, newest first, and the lowest id that the page looks at.

The span comes from the cursor, from what the filter says about ids, and from the bound on rows that a
page looks at; the statement that then reads it needs no bound of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, select

from surehook.ledgers.sqlite.core_sql import rows
from surehook.ledgers.sqlite.session import Session

# Rows a page looks at before it comes back short, with a cursor: some ten milliseconds of reading.
LOOKS_MAX = 10_000
LOWEST, HIGHEST = b"", b"\xff" * 17
_MILLIS_MAX = (1 << 48) - 1


def instant_floor(millis: int) -> bytes:
    """The prefix that sorts before every id made for this instant, and after all made before it."""
    return min(max(0, millis), _MILLIS_MAX).to_bytes(6, "big")


class Span(NamedTuple):
    """The ids that a page can hold: from `low` (inclusive) to `high` (exclusive)."""

    low: bytes = LOWEST
    high: bytes = HIGHEST

    def cut(self, *, low: bytes | None = None, high: bytes | None = None) -> Span:
        """The part of it from `low` on and below `high`."""
        return Span(
            self.low if low is None else max(self.low, low),
            self.high if high is None else min(self.high, high),
        )

    def of(self, key: ColumnElement[bytes]) -> list[ColumnElement[bool]]:
        """The span as conditions: one lower and one upper bound, since SQLite seeks by the first of each."""
        return [key >= self.low, key < self.high]


def look_down(
    session: Session, key: ColumnElement[bytes], span: Span, also: Sequence[ColumnElement[bool]] = ()
) -> bytes | None:
    """The id that stands `LOOKS_MAX` rows down the span; None where the span ends before."""
    at_bound = select(key).where(*span.of(key), *also).order_by(key.desc()).limit(1).offset(LOOKS_MAX - 1)
    found: list[tuple[Any, ...]] = rows(session, at_bound)
    return found[0][0] if found else None
