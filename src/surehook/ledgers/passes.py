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
from surehook.ledgers.late import LATE_MS

# Due time and id: the order of claims.
Key: TypeAlias = tuple[int, bytes]

# Rows become visible after they are due, by the length of a commit and the difference of clocks.
FRESH_MS = 500
# A position so much further back fits into one look, as long as few rows fall due. A cut look tells that it does not.
NEAR_MS = 1_000
# The most looks of one call at rows that have just fallen due, of which the first may have begun before them. All eight are
# 40,000 rows on PostgreSQL and 32,000 on SQLite.
FRESH_LOOKS = 8
# While looks are cut, all of what is fresh is read so often; calls in between begin so much before the end of what was read,
# which is longer than most commits take.
WHOLE_MS = 250
COMMIT_MS = 100
# Between two calls that look at what lies before although others come.
OWED_MS = 50
# From the beginning of one pass to the next.
REST_MS = 1_000
_BEGINNING: Key = (-(1 << 62), b"")
_END: Key = (1 << 62, b"")


class Passing:
    """The positions of one lane. Times are Unix milliseconds.

    upto     all rows due before it have been looked at
    lowered  the lowest position that became ready since the last look began, which may have passed it
    recent   the same for what is fresh
    at       the position of the pass through everything; None: it is over
    began    when that pass began
    owes     the last call ended in what is fresh: it found something there, or failed
    paid_at  when a call last looked at what lies before
    found    that call found something there, or failed
    cut_at   when a call last began with all of what is fresh and a look was cut
    read     where calls soon after that begin
    """

    __slots__ = ("at", "began", "cut_at", "found", "lowered", "owes", "paid_at", "read", "recent", "upto")

    def __init__(self) -> None:
        self.upto = _BEGINNING
        self.lowered = self.recent = _END
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
        lane.lowered = lane.recent = _END

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
        lane, usual = self._lane, (self._now - COMMIT_MS, b"")
        if self.begin <= lane.read:
            lane.read = min(usual if last is None else min(last, usual), lane.recent)


class Past(DueRange):
    """A piece of the pass. The next call goes on at its end."""

    def reached(self, last: Key | None) -> None:
        self._lane.at = last


class Passes:
    """The positions of all lanes."""

    def __init__(self, *, owed_looks: int) -> None:
        """`owed_looks`: the most of a call at what lies before although others come."""
        self._owed_looks = owed_looks
        self._lanes = [Passing() for _ in LANES]

    def parts(
        self, lane: Lane, *, due_by: int, now: int, looks: int, fresh: bool = False
    ) -> Iterator[DueRange]:
        """Yield what to look at in one call, part by part, until something is found.

        looks  the most parts of rows that fell due unseen, where nothing is owed to them
        fresh  look only at rows that have just fallen due
        """
        if fresh:
            yield from self._fresh(lane, due_by=due_by, now=now)
            return
        passing = self._lanes[lane]
        pays = passing.owes and (passing.found or not 0 <= now - passing.paid_at < OWED_MS)
        if pays:
            passing.owes = False  # where this finds something, what is fresh goes first in the next call
            yield from self._earlier(lane, now=now, looks=self._owed_looks)
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
        passing.read = begin
        goes_back = True
        for _ in range(FRESH_LOOKS):
            part = JustDue(passing, begin, due_by, now=now)
            yield part
            if part.last is not None:
                begin = max(just, part.last)
                if not goes_on:
                    passing.cut_at = now
            elif goes_back and just <= passing.read < part.begin:
                begin, goes_back = passing.read, False  # the look has shown that a commit before it is over
            else:
                break

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

    def seen(self, lane: Lane, *, now: int) -> int:
        """Return the instant before which the next call does not look at what is fresh."""
        passing = self._lanes[lane]
        goes_on = 0 <= now - passing.cut_at < WHOLE_MS
        return max(passing.upto[0], passing.read[0]) if goes_on else passing.upto[0]

    def taken(self, lane: Lane, due_at: int) -> None:
        """Move on: a claim that skips nobody has left no row due before this instant."""
        passing = self._lanes[lane]
        passing.upto = max(passing.upto, (due_at, b""))

    def lower(self, due_at: int | None) -> None:
        """Go back: rows due from this instant on have become ready."""
        if due_at is not None:
            self._go_back(due_at - 1, due_at - 1)

    def ended(self, due_at: int) -> None:
        """Go back: a transaction has ended that was under way at a look, `LATE_MS` after this instant."""
        self._go_back(due_at - 1, due_at - 1 + LATE_MS - COMMIT_MS)

    def _go_back(self, place_ms: int, recent_ms: int) -> None:
        place, recent = (place_ms, b""), (recent_ms, b"")
        for passing in self._lanes:
            passing.upto, passing.lowered = min(passing.upto, place), min(passing.lowered, place)
            passing.read, passing.recent = min(passing.read, recent), min(passing.recent, recent)


def _just(now: int) -> Key:
    """Return where what is fresh begins."""
    return now - FRESH_MS, b""
