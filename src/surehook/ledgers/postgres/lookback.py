"""When a walk that begins at a mark looks back over everything: one rule for claims, taking back and sweeps.

An index keeps the entries of rows that were taken until vacuum may remove them, and while somebody holds a snapshot it
may not. So walks go on from a mark. What comes to lie behind one (a commit that took seconds, a dead node's rows) is
found by looking back.

How soon that is done again is told by how far it was: the entries of the index that it walked over, of which the server
keeps count. Never by how long it took. Where commits stand still for seconds a walk over ten rows takes as long, and
those are the moments in which rows come to lie behind marks: measured in time, one slow claim put the next look back
off by minutes. A walk from a mark that was slow makes it look back at once instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS = time.monotonic
AGAIN_S = 0.5  # from one look back to the next at least: below a poll, so that each poll of an idle worker looks back
MOST_S = 15.0  # … at most: a dead node's rows are not waited for longer either
# … of taking back: what others parked is not noted, so each of the ten-second looks looks back.
PARKED_MOST_S = 9.0
ENTRIES_PER_S = 16_000  # one part in sixty of the time, at a microsecond an entry
FAR_ENTRIES = 2_000  # about two milliseconds
SLOW_S = 0.5  # a walk from a mark that takes longer has met a server that stands still


class LookBack:
    """One walk's. `clock` counts seconds."""

    __slots__ = ("_at", "_began", "_clock", "_has_ended", "_looks_back", "_most_s", "is_far")

    def __init__(self, clock: Callable[[], float], *, most_s: float = MOST_S) -> None:
        """`most_s`: from one look back to the next at most."""
        self._clock = clock
        self._most_s = most_s
        self._at = 0.0
        self._began = 0.0
        self._looks_back = False
        self._has_ended = False  # else it failed, and nobody knows what it has done
        self.is_far = False  # the last one walked over many entries of rows that are gone

    def begin(self, *, anyhow: bool = False) -> bool:
        """A walk begins: whether it looks back over everything. `anyhow`: it shall."""
        self._began = self._clock()
        self._looks_back = anyhow or not self._has_ended or self._began >= self._at
        self._has_ended = False
        if self._looks_back:
            self._at = self._began + self._most_s  # until it has ended
        return self._looks_back

    @property
    def is_due(self) -> bool:
        """A walk that began now would look back: nothing need be known of the last one."""
        return self._clock() >= self._at

    def ended(self, walked: int) -> None:
        """The walk that began last went over so many entries of rows that are gone, or were not given."""
        now = self._clock()
        self._has_ended = True
        if self._looks_back:
            self.is_far = walked > FAR_ENTRIES
            self._at = now + min(max(AGAIN_S, walked / ENTRIES_PER_S), self._most_s)
        elif now - self._began >= SLOW_S:
            self._at = now

    def soon(self) -> None:
        """The next walk looks back: this one left something behind."""
        self._at = self._clock()
