"""Looks from time to time, so that nothing depends on a signal: each purpose for itself.

A purpose has a pace of its own and a loop of its own: one that is slow or fails keeps no other waiting, and how late
each of them is stands in the metrics. Late is what has not been done since it was due, whether it runs, fails, waits, or
puts a part of itself off.
"""

from __future__ import annotations

from collections.abc import Callable

from surehook.delivery.loops import Loops, Run
from surehook.ports.clock import Clock

Left = Callable[[], float | None]


class Purpose:
    """One thing to look at, every `pace_s` seconds from the end of the look before."""

    def __init__(
        self, clock: Clock, name: str, pace_s: float, work: Run, *, rest_s: float, left: Left | None = None
    ) -> None:
        self.name = name
        self.pace_s = pace_s
        self._clock = clock
        self._work = work
        self._due = clock.boot() + rest_s
        self._left = left

    async def run(self) -> None:
        """Look once. An error leaves it due."""
        await self._work()
        self._due = self._clock.boot() + self.pace_s

    @property
    def late_s(self) -> float:
        """Seconds since it was due, or the part of it that was left out."""
        left = None if self._left is None else self._left()
        due = self._due if left is None else min(self._due, left + self.pace_s)
        return max(0.0, self._clock.boot() - due)


class Upkeep:
    """The purposes of one engine."""

    def __init__(self, *, clock: Clock, loops: Loops) -> None:
        self._clock = clock
        self._loops = loops
        self.purposes: list[Purpose] = []

    def add(
        self, name: str, pace_s: float, work: Run, *, at_once: bool = False, left: Left | None = None
    ) -> None:
        """Look at one more thing from now on; `at_once`: for the first time now. `left` says since when on the boot clock a
        part of it has been left out (None: all of it was looked at)."""
        purpose = Purpose(self._clock, name, pace_s, work, rest_s=0.0 if at_once else pace_s, left=left)
        self.purposes.append(purpose)
        self._loops.every(name, pace_s, purpose.run, at_once=at_once)

    def late_s(self) -> dict[str, float]:
        """Lateness of each purpose, in seconds."""
        return {purpose.name: purpose.late_s for purpose in self.purposes}
