"""The rows to look at for claims that skip some endpoints and tenants, so that each look is bounded.

1. Rows that have just fallen due are last in the order: calls begin there, where the last one ended. A look that is cut,
   since so many have fallen due, is followed by a few others: what a hint tells of is the last row of all.
2. Rows that fell due unseen (the ledger was away, a process started, a look was cut) lie before that: a call goes on from
   there, with many looks, until it has caught up.
3. A call that has caught up and found nothing looks at a piece of everything before, and the next call at the next piece,
   over and over: a safety net for rows that nobody has noted.

A call ends with the look that finds something. Where that was in what is fresh, the next one after `OWED_MS` begins with a few
looks at what lies before, and a piece of the pass, so that rows there do not wait for as long as others come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from surehook.core.model import LANES, Lane

# Due time and id: the order of claims.
Key: TypeAlias = tuple[int, bytes]

# Rows become visible after they are due, by the length of a commit and the difference of clocks.
FRESH_MS = 500
# A position so much further back fits into one look, as long as few rows fall due. A cut look tells that it does not.
NEAR_MS = 1_000
# The most looks of one call at rows that have just fallen due, of which the first may have begun before them. All eight are
# 40,000 rows on PostgreSQL and 32,000 on SQLite.
FRESH_LOOKS = 8
# Between two calls that look at what lies before although others come; they have a fourth of a call's looks for that, at
# least one.
OWED_MS = 50
OWED_PART = 4
# From the beginning of one pass to the next.
REST_MS = 1_000
_BEGINNING: Key = (-(1 << 62), b"")
_END: Key = (1 << 62, b"")


class Passing:
    """The positions of one lane.

    upto     all rows due before it have been looked at
    lowered  the lowest position that became ready since the last look began, which may have passed it
    at       the position of the pass through everything; None: it is over
    began    the time at which that pass began (Unix milliseconds)
    owes     the last call ended in what is fresh: it found something there, or failed
    before   the time at which a call last did that (Unix milliseconds)
    """

    __slots__ = ("at", "before", "began", "lowered", "owes", "upto")

    def __init__(self) -> None:
        self.upto = _BEGINNING
        self.lowered = _END
        self.at: Key | None = None
        self.began = 0
        self.owes = False
        self.before = 0


class DueRange:
    """Rows to look at: those after `begin` that are due by `end`. `last` is the row at which a look was cut."""

    def __init__(self, begin: Key, end: int, lane: Passing) -> None:
        self.begin = begin
        self.end = end
        self.last: Key | None = None
        self._lane = lane

    def reached(self, last: Key | None) -> None:
        """End the look at this row; None: it reached the last one."""
        self.last = last


class Next(DueRange):
    """The rows after all that was looked at. It counts up to `most` only, since rows become visible a little late."""

    def __init__(self, begin: Key, end: int, lane: Passing, most: Key) -> None:
        super().__init__(begin, end, lane)
        self._most = most
        lane.lowered = _END

    def reached(self, last: Key | None) -> None:
        super().reached(last)
        upto = max(self.begin, self._most if last is None else min(last, self._most))
        self._lane.upto = min(upto, self._lane.lowered)


class Past(DueRange):
    """A piece of the pass. The next call goes on at its end."""

    def reached(self, last: Key | None) -> None:
        self._lane.at = last


class Passes:
    """The positions of all lanes."""

    def __init__(self) -> None:
        self._lanes = [Passing() for _ in LANES]

    def parts(
        self, lane: Lane, *, due_by: int, now: int, looks: int, fresh: bool = False
    ) -> Iterator[DueRange]:
        """Yield what to look at in one call, part by part, until something is found.

        looks  the most parts of rows that fell due unseen
        fresh  look only at rows that have just fallen due
        """
        if fresh:
            yield from self._fresh(lane, due_by=due_by, now=now)
            return
        passing = self._lanes[lane]
        pays = passing.owes and not 0 <= now - passing.before < OWED_MS
        if pays:
            passing.owes = False  # where this finds something, what is fresh goes first in the next call
            yield from self._before(lane, now=now, looks=max(1, looks // OWED_PART))
        passing.owes = True
        yield from self._fresh(lane, due_by=due_by, now=now)
        passing.owes = False
        if not pays:
            yield from self._before(lane, now=now, looks=looks)

    def _fresh(self, lane: Lane, *, due_by: int, now: int) -> Iterator[DueRange]:
        passing = self._lanes[lane]
        just: Key = (now - FRESH_MS, b"")
        is_near = passing.upto[0] >= just[0] - NEAR_MS
        part = (
            Next(min(passing.upto, just), due_by, passing, just)
            if is_near
            else DueRange(just, due_by, passing)
        )
        for _ in range(FRESH_LOOKS):
            yield part
            if part.last is None:
                break
            part = DueRange(max(part.last, just), due_by, passing)

    def _before(self, lane: Lane, *, now: int, looks: int) -> Iterator[DueRange]:
        passing = self._lanes[lane]
        passing.before = now
        just: Key = (now - FRESH_MS, b"")
        yield from self.missed(lane, now=now, looks=looks)
        if passing.upto < just:
            return
        if passing.at is None and not 0 <= now - passing.began < REST_MS:
            passing.at, passing.began = _BEGINNING, now
        if passing.at is not None:
            yield Past(passing.at, just[0], passing)

    def missed(self, lane: Lane, *, now: int, looks: int) -> Iterator[DueRange]:
        """Yield parts of the rows that fell due unseen."""
        passing = self._lanes[lane]
        fresh: Key = (now - FRESH_MS, b"")
        for _ in range(looks):
            if passing.upto >= fresh:
                return
            yield Next(passing.upto, fresh[0], passing, fresh)

    def is_behind(self, lane: Lane, *, now: int) -> bool:
        """Return True if rows that fell due unseen have not been looked at yet."""
        return self._lanes[lane].upto < (now - FRESH_MS - NEAR_MS, b"")

    def seen(self, lane: Lane) -> int:
        """Return the instant before which all due rows have been looked at."""
        return self._lanes[lane].upto[0]

    def taken(self, lane: Lane, due_at: int) -> None:
        """Move on: a claim that skips nobody has left no row due before this instant."""
        passing = self._lanes[lane]
        passing.upto = max(passing.upto, (due_at, b""))

    def lower(self, due_at: int | None) -> None:
        """Go back: rows due from this instant on have become ready."""
        if due_at is not None:
            place: Key = (due_at - 1, b"")
            for passing in self._lanes:
                passing.upto, passing.lowered = min(passing.upto, place), min(passing.lowered, place)
