"""A clock of a simulated machine: wall time with an offset, a drift and steps, and a boot time without them."""

from __future__ import annotations

import asyncio

from lab.sim.loop import SimLoop

# 2026-01-01T00:00:00Z, where every world begins.
EPOCH_MS = 1_767_225_600_000
# A timer of the loop that is due at a whole millisecond is not short of it by what a float loses.
NANOSECOND_MS = 1e-6


class SimClock:
    """`ports.clock.Clock` over a simulated loop.

    offset_ms   how far this machine's wall clock is from the world's at the start
    drift_ppm   microseconds its wall clock gains (loses) in a second
    """

    def __init__(self, loop: SimLoop, *, offset_ms: int = 0, drift_ppm: float = 0.0) -> None:
        self._loop = loop
        self._began = loop.time()
        self._offset_ms = self._first_offset_ms = offset_ms
        self._rate = 1.0 + drift_ppm / 1e6
        # Loop time of each step, and what the clock showed before it.
        self._steps: list[tuple[float, int]] = []

        self._set_back: list[float] = []  # loop times
        self._advanced: list[float] = []

    def now(self) -> int:
        elapsed_ms = (self._loop.time() - self._began) * self._rate * 1000
        return EPOCH_MS + self._offset_ms + int(elapsed_ms + NANOSECOND_MS)

    def boot(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def step(self, milliseconds: int) -> None:
        """Someone sets the wall clock. Boot time does not notice."""
        self._steps.append((self._loop.time(), self.now()))
        self._offset_ms += milliseconds
        if milliseconds:
            (self._set_back if milliseconds < 0 else self._advanced).append(self._loop.time())

    def put_right(self) -> None:
        """Undo all steps."""
        self.step(self._first_offset_ms - self._offset_ms)

    def highest(self, shown: int, since: float, until: float) -> int:
        """The latest time it showed between two loop times, when it shows `shown` at `until`."""
        return max([shown, *(before for at, before in self._steps if since <= at <= until)])

    def set_back(self, since: float, until: float) -> float | None:
        """Instant at which it was first set back between two loop times, or None."""
        return next((at for at in self._set_back if since <= at <= until), None)

    def advanced(self, since: float, until: float) -> bool:
        """True where it was set ahead between two loop times."""
        return any(since <= at <= until for at in self._advanced)
