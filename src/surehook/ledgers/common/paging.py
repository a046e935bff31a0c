"""One page of a list: a span of ids, newest first, and the lowest id that the page looks at.

The span follows from the cursor, the filter's conditions on ids, and the bound on rows that a page looks at. The statement
that then reads it needs no bound of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, select

from surehook.ledgers.common.indexes import HIGHEST, LOOKS_MAX, LOWEST
from surehook.ledgers.common.steps import Steps
from surehook.ports.registry import Page

# Open deliveries cost a fifth as much each, and each page reads finished ones as well.
OPEN_LOOKS_MAX = 50_000
_MILLIS_MAX = (1 << 48) - 1


def instant_floor(millis: int) -> bytes:
    """Return the prefix that sorts before every id of this instant, and after all earlier ones."""
    return min(max(0, millis), _MILLIS_MAX).to_bytes(6, "big")


class Span(NamedTuple):
    """The ids that a page can hold: from `low` (inclusive) to `high` (exclusive)."""

    low: bytes = LOWEST
    high: bytes = HIGHEST

    def cut(self, *, low: bytes | None = None, high: bytes | None = None) -> Span:
        """Return the part from `low` on and below `high`."""
        return Span(
            self.low if low is None else max(self.low, low),
            self.high if high is None else min(self.high, high),
        )

    def of(self, key: ColumnElement[bytes]) -> list[ColumnElement[bool]]:
        """Return the span as conditions: one lower and one upper bound, since SQLite seeks by the first of each."""
        return [key >= self.low, key < self.high]


def look_down(
    key: ColumnElement[bytes],
    span: Span,
    also: Sequence[ColumnElement[bool]] = (),
    *,
    rows: int | None = LOOKS_MAX,
) -> Steps[bytes | None]:
    """Find the id that is `rows` rows down the span; None if the span is shorter, or `rows` is None (no bound)."""
    if rows is None:
        return None
    found = yield select(key).where(*span.of(key), *also).order_by(key.desc()).limit(1).offset(rows - 1)
    return found[0][0] if found else None


class PageSource(NamedTuple):
    """The values that one table contributes to a page, newest first, each with an `id`.

    Every match at or above `lowest` is in `found`; LOWEST: the table was read to its end.
    """

    found: list[Any]
    lowest: bytes

    @staticmethod
    def read(found: list[Any], lowest: bytes | None, limit: int) -> PageSource:
        """Make a source of up to `limit + 1` rows above `lowest`."""
        if len(found) > limit:
            return PageSource(found, found[-1].id)
        return PageSource(found, LOWEST if lowest is None else lowest)


def above_and_below(
    span: Span,
    cut: bytes,
    above: Callable[[Span], Steps[PageSource]],
    below: Callable[[Span], Steps[PageSource]],
) -> Steps[PageSource]:
    """Read a span in two ways, from an id on and below it. The lower part follows if the upper one was read to its end."""
    upper, lower = span.cut(low=cut), span.cut(high=cut)
    found = PageSource([], LOWEST)
    if upper.low < upper.high:
        found = yield from above(upper)
    if found.lowest != LOWEST or lower.low >= lower.high:
        return found
    rest = yield from below(lower)
    return PageSource(found.found + rest.found, rest.lowest)


def merged(sources: Sequence[PageSource], limit: int) -> Page:
    """Merge sources to one page. Above the highest of their ends, all of them are complete."""
    lowest = max(source.lowest for source in sources)
    page = [one for source in sources for one in source.found if one.id >= lowest]
    page.sort(key=lambda one: one.id, reverse=True)
    if len(page) > limit:
        return Page(page[:limit], page[limit - 1].id)
    return Page(page, lowest or None)
