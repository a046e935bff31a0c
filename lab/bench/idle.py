"""`idle`: what a server costs that has nothing to do."""

from __future__ import annotations

import time
from typing import Any

from lab.bench import processes
from lab.bench.stage import Setup, stage

SECONDS = 20.0
SETTLE_S = 2.0  # after the start, whose own work is not idleness
ENDPOINTS = 20


def run(setup: Setup) -> list[dict[str, Any]]:
    """Share of one core over the time, and memory. The figures are as coarse as the kernel's ticks (10 ms)."""
    seconds = setup.seconds or SECONDS
    with stage(setup) as scene:
        for number in range(ENDPOINTS):
            scene.endpoint(f"/ok/{number}", ["document.*"])
        time.sleep(SETTLE_S)
        setup.say.step(f"idle: watching for {seconds:.0f} s")
        before, began = processes.cpu_seconds(scene.server.pid), time.monotonic()
        time.sleep(seconds)
        spent = processes.cpu_seconds(scene.server.pid) - before
        rss, peak = processes.memory_mb(scene.server.pid)
        share = spent / (time.monotonic() - began) * 100
    return [
        {
            "scenario": "idle",
            "seconds": seconds,
            "cpu_percent_of_core": round(share, 2),
            "memory_mb": rss,
            "peak_memory_mb": peak,
        }
    ]
