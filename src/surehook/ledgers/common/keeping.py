"""Counts that took long are kept for a while, so that asking often costs a bounded share of the database."""

from __future__ import annotations

import time
from typing import Any

# Counting takes at most one part in so many of the reader's time: a million rows take a tenth of a second.
SHARE = 20
# A count that was quicker than this (seconds) is made anew each time.
QUICK_S = 0.005


class Kept:
    """The last count of each name. `keeps` False: always count, so that a simulated world does not depend on
    how fast the real one is."""

    def __init__(self, *, keeps: bool = True, share: int = SHARE) -> None:
        self._keeps = keeps
        self._share = share
        self._kept: dict[str, tuple[float, Any]] = {}

    def get(self, name: str) -> Any:
        """The count, as long as it is good; else None."""
        good_until, kept = self._kept.get(name, (0.0, None))
        return kept if self._keeps and time.monotonic() < good_until else None

    def start(self) -> float:
        """A count begins; its start is to be given back to `put`."""
        return time.monotonic()

    def put(self, name: str, count: Any, *, started: float) -> None:
        """Keep a count that was begun at `started`."""
        now = time.monotonic()
        took = now - started
        self._kept[name] = (now + took * self._share if took > QUICK_S else 0.0, count)
