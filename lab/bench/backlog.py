"""`backlog`: whether a mountain of waiting deliveries slows the claiming of those that are due.

Only retries are claimed from the ledger; fresh deliveries are born in memory. So a burst of events goes
to endpoints that answer 503 with a `Retry-After` that leads all of them to the same second. From then on the
server claims and delivers as fast as it can, and the slope at the sink is the rate. This is done
with a thousand, a hundred thousand and a million deliveries waiting in the same ledger.
"""

from __future__ import annotations

import time
from typing import Any

from lab.bench import processes
from lab.bench.figures import percentile
from lab.bench.fill import Kind, fill, waiting_endpoint
from lab.bench.lateness import second_arrivals
from lab.bench.stage import Setup, Stage, stage

SIZES = (1_000, 100_000, 1_000_000)
BURST = 30_000  # retries claimed at once
AHEAD_S = 10.0  # from the first publish to their due time; the burst's first calls must be over by then
ENDPOINTS = 20  # that share the burst, so that no endpoint's slots are what is measured
POLICY: dict[str, Any] = {
    "profile": "standard",
    "schedule": {"fixed": [1] * 8},
    "jitter": None,
    "breaker": None,
    "adaptive": False,
}


def run(
    setup: Setup, largest: int = SIZES[-1], *, future: bool = False, burst: int = BURST
) -> list[dict[str, Any]]:
    """One result per size up to the largest; `ratio` is to the first. They wait parked, or for a retry far in the future."""
    sizes = tuple(size for size in SIZES if size <= largest) or (largest,)
    kind: Kind = "future" if future else "parked"
    results: list[dict[str, Any]] = []
    with stage(setup) as scene:
        waiting_endpoint(scene, kind)
        for number in range(ENDPOINTS):
            scene.endpoint(f"/late/{number}", [f"burst.{number}"], policy=POLICY)
        _claim(scene, min(burst, 3000))  # warm-up
        for size in sizes:
            have = fill(scene, size)
            setup.say.step(f"backlog: {burst:,} retries due among {have:,} waiting deliveries")
            result = {"scenario": f"backlog{size}", "kind": kind, "waiting": have, **_claim(scene, burst)}
            base = (results or [result])[0]["claimed_per_s"]
            result["ratio"] = round(result["claimed_per_s"] / base, 2) if base else None
            result["memory_mb"], result["peak_memory_mb"] = processes.memory_mb(scene.server.pid)
            results.append(result)
    return results


def _claim(scene: Stage, burst: int) -> dict[str, Any]:
    scene.sink.reset()
    due = time.monotonic_ns() + int(AHEAD_S * 1e9)
    scene.sink.due(due)
    names = tuple(f"burst.{number}" for number in range(ENDPOINTS))
    sent = scene.load(*names, mode="batch", batch=50, connections=8, events=burst, seconds=60.0).wait()
    published = time.monotonic_ns()
    while scene.sink.count().requests < sent.deliveries and time.monotonic_ns() < due:
        time.sleep(0.02)
    ready = time.monotonic_ns()
    time.sleep(max(0.0, (due - time.monotonic_ns()) / 1e9))
    cpu = processes.cpu_seconds(scene.server.pid)
    scene.drain(sent.deliveries, waiting=("ready", "held"))
    spent = processes.cpu_seconds(scene.server.pid) - cpu
    arrivals = scene.sink.report()
    instants = sorted(at for at in second_arrivals(arrivals).values() if at >= due)
    return {
        "claimed": len(instants),
        "claimed_per_s": round(_slope(instants)),
        "last_after_due_s": round((instants[-1] - due) / 1e9, 2) if instants else None,
        "server_cpu_us": round(spent / max(1, len(instants)) * 1e6, 1),
        "accepted_per_s": round(len(sent.rows()[0]) / ((published - sent.started_ns) / 1e9)),
        "first_calls_over_in_time": ready < due,
        "lost": sent.deliveries - arrivals.answered,
        "duplicated": arrivals.duplicated,
    }


def _slope(instants: list[int]) -> float:
    """Arrivals a second between the tenth and the ninetieth hundredth: neither the start nor the tail."""
    early, late = percentile(instants, 0.1), percentile(instants, 0.9)
    if early is None or late is None or late == early:
        return 0.0
    return 0.8 * len(instants) / ((late - early) / 1e9)
