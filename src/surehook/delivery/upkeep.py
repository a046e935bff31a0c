"""What is looked at from time to time, so that nothing depends on a signal: each purpose for itself.

A purpose has a pace of its own and a loop of its own: one that is slow or fails keeps no other waiting, and how late
each of them is stands in the metrics. Late is what has not been done since it was due, whether it runs, fails or waits.
"""

from __future__ import annotations

from surehook.delivery.loops import Loops, Run
from surehook.ports.clock import Clock


class Purpose:
    """One thing to look at, every `pace_s` seconds from the end of the look before."""

    def __init__(self, clock: Clock, name: str, pace_s: float, work: Run, *, rest_s: float) -> None:
        self.name = name
        self.pace_s = pace_s
        self._clock = clock
        self._work = work
        self._due = clock.boot() + rest_s

    async def run(self) -> None:
        """Look once. An error leaves it due."""
        await self._work()
        self._due = self._clock.boot() + self.pace_s

    @property
    def late_s(self) -> float:
        """Seconds since it was due."""
        return max(0.0, self._clock.boot() - self._due)


class Upkeep:
    """The purposes of one engine."""

    def __init__(self, *, clock: Clock, loops: Loops) -> None:
        self._clock = clock
        self._loops = loops
        self.purposes: list[Purpose] = []

    def add(self, name: str, pace_s: float, work: Run, *, at_once: bool = False) -> None:
        """Look at one more thing from now on; `at_once`: for the first time now."""
        purpose = Purpose(self._clock, name, pace_s, work, rest_s=0.0 if at_once else pace_s)
        self.purposes.append(purpose)
        self._loops.every(name, pace_s, purpose.run, at_once=at_once)

    def late_s(self) -> dict[str, float]:
        """How late each purpose is, in seconds."""
        return {purpose.name: purpose.late_s for purpose in self.purposes}
