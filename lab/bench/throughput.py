"""`throughput`: how much goes through when publishers push as hard as they can (closed loop)."""

from __future__ import annotations

from typing import Any

from lab.bench.stage import Setup, stage
from lab.bench.steady import measure

SECONDS = 10.0
WARM_UP_S = 2.0
# Connections: enough that group commits fill (64 single, 8 × 50 in batches), few enough to be realistic.
SHAPES: dict[str, dict[str, Any]] = {
    "single": {"mode": "single", "connections": 64, "endpoints": 1},
    "batch50": {"mode": "batch", "batch": 50, "connections": 8, "endpoints": 1},
    "fanout5": {"mode": "single", "connections": 64, "endpoints": 5},
}


def run(setup: Setup, names: tuple[str, ...] = tuple(SHAPES)) -> list[dict[str, Any]]:
    """One result per shape, each on a server and ledger of its own."""
    return [_one(setup, name) for name in names]


def _one(setup: Setup, name: str) -> dict[str, Any]:
    shape = dict(SHAPES[name])
    endpoints = shape.pop("endpoints")
    with stage(setup) as scene:
        for number in range(endpoints):
            scene.endpoint(f"/ok/{number}", ["*"])
        seconds = setup.seconds or SECONDS
        warm = {**shape, "seconds": min(WARM_UP_S, seconds)}
        return measure(scene, name, warm, {**shape, "seconds": seconds})
