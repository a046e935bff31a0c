"""Durations counted by how long they were: what a histogram of a metrics system is made of."""

from __future__ import annotations

from bisect import bisect_left


class Histogram:
    """Counts by bucket, and the sum (milliseconds)."""

    __slots__ = ("bounds", "buckets", "total")

    def __init__(self, bounds: tuple[int, ...]) -> None:
        self.bounds = bounds
        self.buckets = [0] * (len(bounds) + 1)
        self.total = 0

    def note(self, value_ms: int) -> None:
        self.buckets[bisect_left(self.bounds, value_ms)] += 1
        self.total += value_ms
