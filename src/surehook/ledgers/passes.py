"""The rows to look at for claims that skip some endpoints and tenants, so that each look is bounded.

1. Rows that have just fallen due are last in the order: calls begin there, where the last one ended. A look that is cut,
   since so many have fallen due, is followed by a few others: what a hint tells of is the last row of all. Calls that come
   soon after that go on near its end, rather than read all of what is fresh each time.
2. Rows that fell due unseen (the ledger was away, a process started, a look was cut) lie before that: a call goes on from
   there, with many looks, until it has caught up.
3. A call that has caught up and found nothing looks at a piece of everything before, and the next call at the next piece,
   over and over: a safety net for rows that nobody has noted.

A call ends with the look that finds something. Where that was in what is fresh, the next one after `OWED_MS` begins with a few
looks at what lies before, and a piece of the pass, so that rows there do not wait for as long as others come. Where those find
something they are due again at once, every other call, until nothing is left there.
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
# While looks are cut, all of what is fresh is read so often; calls in between begin so much before the end of what was read, as
# long as commits take.
WHOLE_MS = 250
COMMIT_MS = 25
# Between two calls that look at what lies before although others come, with at most so many looks.
OWED_MS = 50
OWED_LOOKS = 8
# From the beginning of one pass to the next.
REST_MS = 1_000
_BEGINNING: Key = (-(1 << 62), b"")
_END: Key = (1 << 62, b"")


class Passing:
    """The positions of one lane. Times are Unix milliseconds.

    upto     all rows due before it have been looked at
    lowered  the lowest position that became ready since the last look began, which may have passed it
    at       the position of the pass through everything; None: it is over
    began    when that pass began
    owes     the last call ended in what is fresh: it found something there, or failed
    paid_at  when a call last looked at what lies before
    found    that call found something there, or failed
    cut_at   when a call last read all of what is fresh and a look was cut
    read     where calls soon after that begin
    """

    __slots__ = ("at", "began", "cut_at", "found", "lowered", "owes", "paid_at", "read", "upto")

    def __init__(self) -> None:
        self.upto = _BEGINNING
        self.lowered = _END
        self.at: Key | None = None
        self.began = 0
        self.owes = False
        self.paid_at = 0
        self.found = False
        self.cut_at = 0
        self.read = _BEGINNING


class DueRange:
    """Rows to look at: those after `begin` that are due by `end`. `last` is the row at which a look was cut.

    A look that begins where all has been looked at moves that place on, but not into what is fresh, since rows become
    visible a little late.
    """

    def __init__(self, lane: Passing, begin: Key, end: int, *, now: int) -> None:
        self.begin = begin
        self.end = end
        self.last: Key | None = None
        self._lane = lane
        self._now = now
        lane.lowered = _END

    def reached(self, last: Key | None) -> None:
        """End the look at this row; None: it reached the last one."""
        self.last = last
        lane, just = self._lane, _just(self._now)
        if self.begin <= lane.upto:
            lane.upto = min(just if last is None else min(last, just), lane.lowered)


class JustDue(DueRange):
    """Rows that have just fallen due."""

    def reached(self, last: Key | None) -> None:
        super().reached(last)
        usual: Key = (self._now - COMMIT_MS, b"")
        self._lane.read = min(usual if last is None else min(last, usual), self._lane.lowered)


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
        pays = passing.owes and (passing.found or not 0 <= now - passing.paid_at < OWED_MS)
        if pays:
            passing.owes = False  # where this finds something, what is fresh goes first in the next call
            yield from self._earlier(lane, now=now, looks=OWED_LOOKS)
        passing.owes = True
        yield from self._fresh(lane, due_by=due_by, now=now)
        passing.owes = False
        if not pays:
            yield from self._earlier(lane, now=now, looks=looks)

    def _fresh(self, lane: Lane, *, due_by: int, now: int) -> Iterator[DueRange]:
        passing = self._lanes[lane]
        just = _just(now)
        goes_on = 0 <= now - passing.cut_at < WHOLE_MS
        if goes_on:
            begin = max(just, passing.read)
        elif self._is_near(lane, now=now):
            begin = min(just, passing.upto)
        else:
            begin = just
        for _ in range(FRESH_LOOKS):
            part = JustDue(passing, begin, due_by, now=now)
            yield part
            if part.last is None:
                break
            if not goes_on:
                passing.cut_at = now
            begin = max(just, part.last)

    def _earlier(self, lane: Lane, *, now: int, looks: int) -> Iterator[DueRange]:
        passing = self._lanes[lane]
        passing.paid_at, passing.found = now, True
        yield from self.missed(lane, now=now, looks=looks)
        just = _just(now)
        if passing.upto >= just:
            if passing.at is None and not 0 <= now - passing.began < REST_MS:
                passing.at, passing.began = _BEGINNING, now
            if passing.at is not None:
                yield Past(passing, passing.at, just[0], now=now)
        passing.found = False

    def missed(self, lane: Lane, *, now: int, looks: int) -> Iterator[DueRange]:
        """Yield parts of the rows that fell due unseen."""
        passing = self._lanes[lane]
        just = _just(now)
        for _ in range(looks):
            if passing.upto >= just:
                return
            yield DueRange(passing, passing.upto, just[0], now=now)

    def is_behind(self, lane: Lane, *, now: int) -> bool:
        """Return True if rows that fell due unseen have not been looked at yet."""
        return not self._is_near(lane, now=now)

    def _is_near(self, lane: Lane, *, now: int) -> bool:
        return self._lanes[lane].upto[0] >= now - FRESH_MS - NEAR_MS

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
                passing.read = min(passing.read, place)


def _just(now: int) -> Key:
    """Return where what is fresh begins."""
    return now - FRESH_MS, b""
