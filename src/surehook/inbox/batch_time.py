"""The time of a batch, and what a worker claims for the next one by that.

What a batch has locked is locked until its commit, so it ends after a while, and gives back what it did not come to. That was
read and written for nothing: a worker claims what the time of its last batch would have been enough for.
"""

from __future__ import annotations

import math
from collections.abc import Callable

SPARE = 0.9  # of the runs for which the time of a batch would be enough: the next ones may take longer
GROWS = 4  # what a worker claims, while it does all of it


class BatchTime:
    """The time of one batch: enough was done at once when it is over, or when the worker is to stop."""

    def __init__(self, boot: Callable[[], float], most_s: float, is_stopping: Callable[[], bool]) -> None:
        self._boot, self._most_s, self._is_stopping = boot, most_s, is_stopping
        # Since it was first asked, before the first: what workers wait for each other with is waited for by then.
        self._began: float | None = None
        self._lasted, self._asked = 0.0, 0

    def is_over(self) -> bool:
        """Asked before the first thing that is done, which is done in any case, and after each."""
        now = self._boot()
        if self._began is None:
            self._began = now
        self._lasted, self._asked = now - self._began, self._asked + 1
        return self._lasted >= self._most_s or self._is_stopping()

    @property
    def enough_for(self) -> float:
        """The number of such things for which the time would be enough; commits, which do not become longer, not counted."""
        return (self._asked - 1) / self._lasted * self._most_s if self._lasted > 0 else math.inf


class ClaimSize:
    """The number of runs that a worker claims: those it has to give back another could have begun with, and each is written
    twice and read once more for nothing. One, where nobody knows yet how long handlers take, and then all that may be."""

    def __init__(self, most: int, *, is_known: bool) -> None:
        self._most = self._grows = most
        self._is_measured = is_known
        self.size = most if is_known else 1

    def shared(self, done: int, left: int, enough_for: float) -> None:
        """Adapt to a batch: so many runs shared its transaction and were done, so many were given back; a batch's time would have
        been enough for so many."""
        size, self._grows = done if left else self.size * self._grows, GROWS
        # The first handler of a process waits for more than itself: a connection, and its statements, to be prepared.
        enough = enough_for * SPARE if self._is_measured else math.inf
        self._is_measured = True
        self.size = max(1, int(min(size, self._most, enough)))

    def alone(self) -> None:
        """Adapt to runs that had a transaction each, as one was slow, or others wanted their rows: so may the next."""
        self.size, self._grows = 1, GROWS
