"""Where claims of each lane begin: at the due time that the last one ended at, and now and then at the beginning.

What falls due behind a mark (a node's rows that were freed, handed back) lowers it where this node knows of it, and else is
found when a claim looks back over everything (lookback.py). Nothing here asks a server: who claims hands in what it found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from surehook.core.instants import SECOND_MS
from surehook.core.model import LANES, Delivery, Lane
from surehook.ledgers.postgres.lookback import LookBack
from surehook.ports.ledger import is_full

# Rows become visible after the instant they are due for: by the length of a commit, and the distance of clocks.
# Later ones are found by looking back. While a snapshot is held, each claim walks over what was taken in this time.
SLACK_MS = SECOND_MS // 2

BEGINNING = -(1 << 62)
END = 1 << 62


class Marks:
    """Of all lanes. `clock` counts seconds, instants are Unix milliseconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._from = [BEGINNING for _ in LANES]
        self._reached = [BEGINNING for _ in LANES]
        self._lowered = [END for _ in LANES]  # since the last claim began, which may have passed by
        self._look_backs = [LookBack(clock) for _ in LANES]

    def lower(self, due_at: int | None) -> None:
        """Rows of this instant, or later ones, may have become ready."""
        if due_at is not None:
            self._from = [min(mark, due_at) for mark in self._from]
            self._lowered = [min(mark, due_at) for mark in self._lowered]

    def at(self, lane: Lane) -> int:
        """Nothing that is due earlier is known of."""
        return self._from[lane]

    def reached(self, lane: Lane) -> int:
        """Where the last claim ended, although the mark was lowered since, say by a transaction that it saw was over."""
        return self._reached[lane]

    def begin(self, lane: Lane) -> int:
        """A claim begins: from which due time on."""
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
        """The claim that began last gave these rows, and walked over so many entries of others."""
        self._look_backs[lane].ended(walked)
        is_cut = is_full(leased, limit=limit, size=size)
        reached = min(leased[-1].due_at, now - SLACK_MS) if is_cut else min(due_by, now) - SLACK_MS
        self._reached[lane] = reached
        self._from[lane] = min(reached, self._lowered[lane])
