"""Counters of the engine: plain integers, read by whoever renders metrics. One call an attempt, no labels made."""

from __future__ import annotations

from collections.abc import Sequence

from surehook.core.histogram import Histogram
from surehook.core.model import LANES, Lane

# Upper bounds in milliseconds; the last bucket is open.
LATENCY_MS = (
    5,
    10,
    25,
    50,
    100,
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    30_000,
    60_000,
    300_000,
    3_600_000,
    86_400_000,
)
LATENESS_MS = (5, 10, 25, 50, 100, 250, 500, 1_000, 5_000, 60_000)


class DeliveryCounts:
    """Counts since the start of this process."""

    def __init__(self) -> None:
        self.attempts: dict[tuple[str, str], int] = {}  # (lane, outcome)
        self.retries = 0
        self.finished_by_state: dict[str, int] = {}
        self.notices: dict[str, int] = {}
        self.receipts: dict[str, int] = {}  # stages reached
        self.latency = Histogram(LATENCY_MS)  # acceptance to delivered
        self.lateness = Histogram(LATENESS_MS)  # a retry's due time to its start
        self._fast = 0  # first-lane successes, the common case, kept out of the dictionary

    def attempted(self, lane: Lane, outcome: str, *, total_us: int, late_ms: int, number: int) -> None:
        if outcome == "delivered" and lane == 0:
            self._fast += 1
        else:
            key = (LANES[lane], outcome)
            self.attempts[key] = self.attempts.get(key, 0) + 1
        if number > 1:
            self.retries += 1
            self.lateness.note(late_ms)

    def delivered(self, took_ms: Sequence[int]) -> None:
        """Deliveries' ends, committed; how long each took from its acceptance to the answer."""
        self.finished("delivered", len(took_ms))
        self.latency.note_all(took_ms)

    def finished(self, end: str, count: int) -> None:
        """So many committed ends of one kind."""
        if count:
            self.finished_by_state[end] = self.finished_by_state.get(end, 0) + count

    def noticed(self, kind: str) -> None:
        self.notices[kind] = self.notices.get(kind, 0) + 1

    def heard(self, stage: str) -> None:
        self.receipts[stage] = self.receipts.get(stage, 0) + 1

    def attempts_by_lane(self) -> dict[tuple[str, str], int]:
        counts = dict(self.attempts)
        if self._fast:
            counts["first", "delivered"] = counts.get(("first", "delivered"), 0) + self._fast
        return counts
