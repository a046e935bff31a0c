"""`latency`: how long acceptance and arrival take at an ordinary, fixed rate (open loop)."""

from __future__ import annotations

from typing import Any

from lab.bench.stage import Setup, stage
from lab.bench.steady import measure

SECONDS = 20.0
WARM_UP_S = 3.0
RATES = (50, 200)  # events/s
CONNECTIONS = 16  # kept connections of the publisher; a request that finds none waits, and its clock runs


def run(setup: Setup, rates: tuple[int, ...] = RATES) -> list[dict[str, Any]]:
    """One result per rate."""
    results = []
    for rate in rates:
        with stage(setup) as scene:
            scene.endpoint("/ok", ["*"])
            seconds = setup.seconds or SECONDS
            plan = {"rate": float(rate), "connections": CONNECTIONS}
            warm = {**plan, "seconds": min(WARM_UP_S, seconds)}
            results.append(measure(scene, f"latency{rate}", warm, {**plan, "seconds": seconds}))
    return results
