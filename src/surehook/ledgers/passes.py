"""Where claims look that pass some endpoints and tenants over, so that each looks at a bounded number of rows.

What has just fallen due lies at the end of the order: every call begins there, where the last one ended. What fell due while
nobody looked (a ledger that was away, a process that began) lies before that: a call goes on from there with many looks
until it has caught up. Where a call has caught up and found nothing, it looks at a piece of everything before, and the next
one at the next piece, over and over: a net for what nobody has told of.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from surehook.core.model import LANES, Lane

Key: TypeAlias = tuple[int, bytes]  # due time and id: the order of claims

# Rows become visible after the instant they are due for, by a commit and the distance of clocks.
FRESH_MS = 500
NEAR_MS = 1_000  # so much more of what has just fallen due goes into one look
REST_MS = 1_000  # from the beginning of one pass to the next
_BEGINNING: Key = (-(1 << 62), b"")
_END: Key = (1 << 62, b"")


class Passing:
    """One lane. Everything that is due before `upto` has been looked at since it was there; `at` is where the pass
    stands, None when it is over; `began` when it began (Unix milliseconds). `lowered`: since the last look began, which
    may have passed by."""

    __slots__ = ("at", "began", "lowered", "upto")

    def __init__(self) -> None:
        self.upto = _BEGINNING
        self.lowered = _END
        self.at: Key | None = None
        self.began = 0


class Part:
    """Rows to look at: those after `begin`, due by `end`."""

    def __init__(self, begin: Key, end: int, lane: Passing) -> None:
        self.begin = begin
        self.end = end
        self._lane = lane

    def reached(self, last: Key | None) -> None:
        """The look ended at this row; None: with the last one there was."""


class Next(Part):
    """What follows on all that was looked at; it counts up to `most`, since rows become visible a little late."""

    def __init__(self, begin: Key, end: int, lane: Passing, most: Key) -> None:
        super().__init__(begin, end, lane)
        self._most = most
        lane.lowered = _END

    def reached(self, last: Key | None) -> None:
        upto = max(self.begin, self._most if last is None else min(last, self._most))
        self._lane.upto = min(upto, self._lane.lowered)


class Past(Part):
    """A piece of the pass; the next call goes on where this one ended."""

    def reached(self, last: Key | None) -> None:
        self._lane.at = last


class Passes:
    """Every lane's."""

    def __init__(self) -> None:
        self._lanes = [Passing() for _ in LANES]

    def parts(self, lane: Lane, *, due_by: int, now: int, looks: int, fresh: bool = False) -> Iterator[Part]:
        """What to look at in this call, one part after another until something is found: so many of them at most of
        what was missed. `fresh`: only what has just fallen due."""
        passing = self._lanes[lane]
        just: Key = (now - FRESH_MS, b"")
        is_near = passing.upto[0] >= just[0] - NEAR_MS
        yield Next(min(passing.upto, just), due_by, passing, just) if is_near else Part(just, due_by, passing)
        if fresh:
            return
        if not is_near:
            yield from self.missed(lane, now=now, looks=looks)
        if passing.upto < just:
            return
        if passing.at is None and not 0 <= now - passing.began < REST_MS:
            passing.at, passing.began = _BEGINNING, now
        if passing.at is not None:
            yield Past(passing.at, just[0], passing)

    def missed(self, lane: Lane, *, now: int, looks: int) -> Iterator[Part]:
        """What fell due while nobody looked."""
        passing = self._lanes[lane]
        fresh: Key = (now - FRESH_MS, b"")
        for _ in range(looks):
            if passing.upto >= fresh:
                return
            yield Next(passing.upto, fresh[0], passing, fresh)

    def is_behind(self, lane: Lane, *, now: int) -> bool:
        """Whether something that was missed has not been looked at yet."""
        return self._lanes[lane].upto < (now - FRESH_MS - NEAR_MS, b"")

    def seen(self, lane: Lane) -> int:
        """What is due before this instant has been looked at."""
        return self._lanes[lane].upto[0]

    def taken(self, lane: Lane, due_at: int) -> None:
        """A claim that passes nobody over has left nothing that was due before."""
        passing = self._lanes[lane]
        passing.upto = max(passing.upto, (due_at, b""))

    def lower(self, due_at: int | None) -> None:
        """Rows of this instant, or later ones, have become ready."""
        if due_at is not None:
            place: Key = (due_at - 1, b"")
            for passing in self._lanes:
                passing.upto, passing.lowered = min(passing.upto, place), min(passing.lowered, place)
