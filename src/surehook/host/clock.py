"""The operating system's clocks."""

from __future__ import annotations

import asyncio
import time

# Counts suspended time, unlike CLOCK_MONOTONIC: a lease must not outlive a laptop's sleep.
_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """ports.Clock on the real clocks."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def boot(self) -> float:
        return time.clock_gettime(_BOOT)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
