"""Durations counted in buckets, as metrics systems want them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


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

    def note_all(self, values_ms: Sequence[int]) -> None:
        """Note many values at once."""
        bounds, buckets = self.bounds, self.buckets
        for value_ms in values_ms:
            buckets[bisect_left(bounds, value_ms)] += 1
        self.total += sum(values_ms)
