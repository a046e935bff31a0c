"""Deciding when a walk that begins at a mark looks back over everything: one rule for claims, taking back and sweeps.

An index keeps the entries of rows that were taken until vacuum removes them, which it cannot while somebody holds a
snapshot. So walks go on from a mark. Rows that come to lie behind it (a commit that took seconds, a dead node's rows) are
found by looking back.

The interval depends on how far the last look back was: the index entries that it walked over, which the server counts. It
never depends on time taken. While commits stall for seconds, a walk over ten rows takes as long, and that is when rows come
to lie behind marks: measured in time, one slow claim delayed the next look back by minutes. Instead, a slow walk from a mark
makes the next one look back at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS = time.monotonic
# The shortest interval between looks back: less than a poll, so that each poll of an idle worker looks back.
AGAIN_S = 0.5
# The longest interval; a dead node's rows do not wait longer either.
MOST_S = 15.0
# The longest one of taking back: parking by other nodes is not noted, so each of the ten-second looks must look back.
PARKED_MOST_S = 9.0
# One sixtieth of the time, at a microsecond per entry.
ENTRIES_PER_S = 16_000
# About two milliseconds.
FAR_ENTRIES = 2_000
# A walk from a mark that takes longer has met a server that stalls.
SLOW_S = 0.5


class LookBack:
    """The looks back of one walk. `clock` counts seconds, and `most_s` is the longest interval between two."""

    __slots__ = ("_at", "_began", "_clock", "_has_ended", "_looks_back", "_most_s", "is_far")

    def __init__(self, clock: Callable[[], float], *, most_s: float = MOST_S) -> None:
        self._clock = clock
        self._most_s = most_s
        self._at = 0.0
        self._began = 0.0
        self._looks_back = False
        # False after a walk that failed: nobody knows what it has done.
        self._has_ended = False
        # The last look back walked over many entries of vanished rows.
        self.is_far = False

    def begin(self, *, anyhow: bool = False) -> bool:
        """Begin a walk; True if it looks back over everything. `anyhow` makes it look back."""
        self._began = self._clock()
        self._looks_back = anyhow or not self._has_ended or self._began >= self._at
        self._has_ended = False
        if self._looks_back:
            # Until it has ended.
            self._at = self._began + self._most_s
        return self._looks_back

    @property
    def is_due(self) -> bool:
        """Return True if a walk that began now would look back, so that the last one's position is not needed."""
        return self._clock() >= self._at

    def ended(self, walked: int) -> None:
        """End the last walk, which passed so many entries of rows that it did not return."""
        now = self._clock()
        self._has_ended = True
        if self._looks_back:
            self.is_far = walked > FAR_ENTRIES
            self._at = now + min(max(AGAIN_S, walked / ENTRIES_PER_S), self._most_s)
        elif now - self._began >= SLOW_S:
            self._at = now

    def soon(self) -> None:
        """Make the next walk look back, since this one left rows behind."""
        self._at = self._clock()
