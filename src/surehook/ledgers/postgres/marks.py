"""Marks: the due times at which claims of each lane begin. Now and then a claim begins at the beginning.

Rows that become ready behind a mark (freed, handed back) lower it if this node knows of them; others are found when a claim
looks back over everything (lookback.py). Nothing here asks a server: claims hand in what they found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from surehook.core.instants import SECOND_MS
from surehook.core.model import LANES, Delivery, Lane
from surehook.ledgers.postgres.lookback import LookBack
from surehook.ports.ledger import is_full

# Rows become visible after they are due, by the length of a commit and the difference of clocks. Later ones are found by
# looking back. While somebody holds a snapshot, each claim walks over the rows that were taken within this time.
SLACK_MS = SECOND_MS // 2

BEGINNING = -(1 << 62)
END = 1 << 62


class Marks:
    """The marks of all lanes. `clock` counts seconds; instants are Unix milliseconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._from = [BEGINNING for _ in LANES]
        self._reached = [BEGINNING for _ in LANES]
        # Lowest instant since the last claim began, which may have passed it.
        self._lowered = [END for _ in LANES]
        self._look_backs = [LookBack(clock) for _ in LANES]

    def lower(self, due_at: int | None) -> None:
        """Lower the marks: rows due from this instant on may have become ready."""
        if due_at is not None:
            self._from = [min(mark, due_at) for mark in self._from]
            self._lowered = [min(mark, due_at) for mark in self._lowered]

    def at(self, lane: Lane) -> int:
        """Return the mark of a lane: no ready row that is due earlier is known."""
        return self._from[lane]

    def reached(self, lane: Lane) -> int:
        """Return the end of the last claim, even if the mark was lowered since, as by a transaction that is over."""
        return self._reached[lane]

    def begin(self, lane: Lane) -> int:
        """Begin a claim, and return the due time from which on it looks."""
        self._lowered[lane] = END
        return BEGINNING if self._look_backs[lane].begin() else self._from[lane]

    def ended(
        self,
        lane: Lane,
        leased: Sequence[Delivery],
        *,
        walked: int,
        limit: int,
        size: int,
        due_by: int,
        now: int,
    ) -> None:
        """End the last claim, which leased these rows and passed `walked` entries of others."""
        self._look_backs[lane].ended(walked)
        is_cut = is_full(leased, limit=limit, size=size)
        reached = min(leased[-1].due_at, now - SLACK_MS) if is_cut else min(due_by, now) - SLACK_MS
        self._reached[lane] = reached
        self._from[lane] = min(reached, self._lowered[lane])
