"""Where claims look that pass some endpoints and tenants over, so that each looks at a bounded number of rows.

What has just fallen due lies at the end of the order: every call begins there, half a second ago. A call that finds
nothing there looks at a piece of everything before, and the next one at the next piece, over and over: what others
have left there (a dead node's rows, old retries) is found when the pass comes by.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from surehook.core.model import LANES, Lane

Key: TypeAlias = tuple[int, bytes]  # due time and id: the order of claims

FRESH_MS = (
    500  # rows become visible after the instant they are due for, by a commit and the distance of clocks
)
REST_MS = 1_000  # from the beginning of one pass to the next
_BEGINNING: Key = (-(1 << 62), b"")


class Part:
    """Rows to look at: those after `begin`, due by `end`."""

    def __init__(self, begin: Key, end: int) -> None:
        self.begin = begin
        self.end = end

    def reached(self, last: Key | None) -> None:
        """The look ended at this row; None: with the last one there was."""


class Past(Part):
    """The part before what is fresh; the next call goes on where this one ended."""

    def __init__(self, begin: Key, end: int, lane: Passing) -> None:
        super().__init__(begin, end)
        self._lane = lane

    def reached(self, last: Key | None) -> None:
        self._lane.at = last


class Passing:
    """One lane's pass: `at` is where it stands, None when it is over; `began` when it began (Unix milliseconds)."""

    __slots__ = ("at", "began")

    def __init__(self) -> None:
        self.at: Key | None = None
        self.began = 0


class Passes:
    """Every lane's."""

    def __init__(self) -> None:
        self._lanes = [Passing() for _ in LANES]

    def parts(self, lane: Lane, *, due_by: int, now: int) -> Iterator[Part]:
        """What to look at in this call, one part after another until something is found."""
        fresh = now - FRESH_MS
        yield Part((fresh, b""), due_by)
        passing = self._lanes[lane]
        if passing.at is None and not 0 <= now - passing.began < REST_MS:
            passing.at, passing.began = _BEGINNING, now
        if passing.at is not None:
            yield Past(passing.at, fresh, passing)
