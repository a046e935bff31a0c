"""Deliveries that wait: how the benches put a thousand or a million of them into a ledger."""

from __future__ import annotations

from typing import Any, Literal

from lab.bench.stage import BenchFailed, Stage

Kind = Literal["parked", "future"]
BATCH = 500
CONNECTIONS = 4
TYPE = "waiting"
# One call that fails, then nothing for an hour.
FUTURE_POLICY: dict[str, Any] = {
    "profile": "standard",
    "schedule": {"fixed": [3600, 3600]},
    "jitter": None,
    "breaker": None,
    "adaptive": False,
}


def waiting_endpoint(scene: Stage, kind: Kind, path: str = "/ok/waiting") -> str:
    """An endpoint whose deliveries stay: a paused one, or one whose first retry is an hour away."""
    if kind == "future":
        return scene.endpoint("/status/500/waiting", [TYPE], policy=FUTURE_POLICY, sink=scene.another_sink())
    endpoint = scene.endpoint(path, [TYPE])
    scene.api.set_status(endpoint, "paused")
    return endpoint


def waiting(scene: Stage) -> int:
    """Count deliveries that stand parked or scheduled."""
    return sum(int(lane["parked"]) + int(lane["scheduled"]) for lane in scene.api.lanes())


def fill(scene: Stage, total: int) -> int:
    """Publish until `total` deliveries wait; how many do. Their endpoint exists already."""
    have = waiting(scene)
    scene.say.step(f"putting {total - have:,} waiting deliveries into the ledger")
    if total > have:
        size = min(BATCH, total - have)
        sent = scene.load(
            TYPE,
            mode="batch",
            batch=size,
            connections=min(CONNECTIONS, -(-(total - have) // size)),
            events=total - have,
            seconds=1800.0,
        ).wait()
        if sent.deliveries < total - have:
            raise BenchFailed(f"only {sent.deliveries:,} of {total - have:,} accepted: {sent.statuses}")
        scene.drain(0, waiting=("ready", "held"))
    return waiting(scene)
