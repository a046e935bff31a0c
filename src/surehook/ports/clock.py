"""Time, handed in. Wall time says when; boot time measures how long; waiting goes through the same door."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def now(self) -> int:
        """Wall clock, Unix milliseconds. May step in either direction."""
        ...

    def boot(self) -> float:
        """Seconds on a clock that never steps and counts suspended time. Leases and deadlines use this."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait. Zero yields once to other work."""
        ...
