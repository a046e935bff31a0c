"""The operating system's clocks."""

from __future__ import annotations

import asyncio
import time
from functools import partial

# Counts suspended time, unlike CLOCK_MONOTONIC: a lease must not outlive a laptop's sleep.
_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """ports.Clock on the real clocks."""

    def __init__(self) -> None:
        # Asked five times a delivery: no frame of ours between.
        self.boot = partial(time.clock_gettime, _BOOT)

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
