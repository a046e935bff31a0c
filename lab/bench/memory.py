"""`memory`: what a server holds in memory while a million deliveries wait in its ledger."""

from __future__ import annotations

import time
from typing import Any

from lab.bench import processes
from lab.bench.fill import Kind, fill, waiting_endpoint
from lab.bench.stage import Setup, stage

WAITING = 1_000_000
DRAIN_S = 10.0  # how long the mountain is drained after activation, under watch


def run(setup: Setup, waiting: int = WAITING, kind: Kind = "parked") -> list[dict[str, Any]]:
    """Resident memory and its peak: while filling, after a restart, and while the mountain drains."""
    with stage(setup) as scene:
        endpoint = waiting_endpoint(scene, kind)
        empty, _ = processes.memory_mb(scene.server.pid)
        began = time.monotonic()
        have = fill(scene, waiting)
        filled_s = time.monotonic() - began
        rss, peak = processes.memory_mb(scene.server.pid)
        setup.say.step("memory: restarting")
        stopped_s = scene.server.stop()
        scene.server.start()
        ready_s = scene.server.wait_ready()
        drained = 0
        if kind == "parked":
            setup.say.step(f"memory: draining for {setup.seconds or DRAIN_S:.0f} s")
            scene.api.set_status(endpoint, "active")
            time.sleep(setup.seconds or DRAIN_S)
            drained = scene.sink.count().answered
        again, again_peak = processes.memory_mb(scene.server.pid)
    return [
        {
            "scenario": "memory",
            "kind": kind,
            "waiting": have,
            "filled_per_s": round(have / filled_s),
            "empty_mb": empty,
            "memory_mb": rss,
            "peak_memory_mb": max(peak, again_peak),
            "stop_s": round(stopped_s, 2),
            "restart_ready_s": round(ready_s, 2),
            "drained": drained,
            "restarted_mb": again,
            "restarted_peak_mb": again_peak,
        }
    ]
