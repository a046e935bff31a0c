"""Counts that took long are reused for a while, so that asking often takes a bounded share of the database's time."""

from __future__ import annotations

import time
from typing import Any

# Counting takes at most 1/20 of the reader's time: a million rows take a tenth of a second.
SHARE = 20
# A count that was quicker than this (seconds) is made each time.
QUICK_S = 0.005


class CountCache:
    """The last count of each name. `keeps` False: count each time, so that a simulated world does not depend on real time."""

    def __init__(self, *, keeps: bool = True, share: int = SHARE) -> None:
        self._keeps = keeps
        self._share = share
        self._kept: dict[str, tuple[float, object]] = {}

    def get(self, name: str) -> Any:
        """Return the count while it may be reused; else None."""
        good_until, kept = self._kept.get(name, (0.0, None))
        return kept if self._keeps and time.monotonic() < good_until else None

    def start(self) -> float:
        """Begin a count. The result is to be passed to `put`."""
        return time.monotonic()

    def put(self, name: str, count: object, *, started: float) -> None:
        """Store a count that began at `started`."""
        now = time.monotonic()
        took = now - started
        self._kept[name] = (now + took * self._share if took > QUICK_S else 0.0, count)
