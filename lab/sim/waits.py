"""Bounds of an open breaker's wait for its probe where its policy changes meanwhile.

A breaker has the numbers of the policy that holds now. So one that opened for five minutes is not kept that long by a policy
that says five seconds: they are counted from the next look for what is parked. What the ledger shows was written by
the policy before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf

from msgspec import Struct

from lab.sim.clock import SimClock
from surehook.core.model import BreakerRow

DRIFT = 0.001  # no clock gains as large a part of its time


class Wait(Struct):
    """Policy from the moment it was asked for, until another one was answered. Loop times."""

    asked_at: float
    seconds: float
    until: float = inf

    def may_be_over(self, at: float, clock: SimClock) -> bool:
        """True where a breaker may probe at `at` by this policy."""
        return at - self.asked_at >= self.seconds * (1 - DRIFT) or clock.advanced(self.asked_at, at)


class Waits:
    """Those that endpoints were asked to have instead of their first."""

    def __init__(self) -> None:
        self._asked: dict[bytes, list[Wait]] = {}

    @contextmanager
    def asking(self, endpoint: bytes, seconds: float, clock: Callable[[], float]) -> Iterator[None]:
        """Somebody gives the endpoint a policy with this wait. What is not answered may be done all the same."""
        before = self._asked.setdefault(endpoint, [])
        asked = Wait(clock(), seconds)
        before.append(asked)
        yield
        for one in before:
            if one is not asked:
                one.until = min(one.until, clock())

    def shorter(self, endpoint: bytes, breaker: BreakerRow, since: float) -> list[Wait]:
        """Those that may have held after loop time `since`, and say less than the breaker opened with."""
        asked, written_s = self._asked.get(endpoint, ()), wait_s(breaker)
        return [one for one in asked if one.until >= since and one.seconds < written_s]


def wait_s(breaker: BreakerRow) -> float:
    """From an opening to its first probe, as it was written."""
    return (breaker.probe_at - breaker.opened_at) / 1000
