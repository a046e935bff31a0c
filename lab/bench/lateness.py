"""`lateness`: whether retries leave when they are due while the engine is half busy.

Some endpoints fail each delivery's first request; their policy has a short fixed schedule without
jitter. What the server itself announces (`next_at` of the first attempt, a wall clock) is compared with
the arrival of the second request at the sink.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from lab.bench import throughput
from lab.bench.figures import spread
from lab.bench.records import Arrivals
from lab.bench.stage import Setup, Stage, stage

SECONDS = 20.0
PEAK_S = 5.0
RETRY_RATE = 200.0  # events/s whose first request fails
FAILING = 8  # endpoints that share them, so that no endpoint's slots are what is measured
WAIT_S = 3
SAMPLE = 1000  # deliveries whose history is read: one API call each
EARLY_MS = 0.0  # `next_at` is whole milliseconds and an instant before which nothing may leave
POLICY: dict[str, Any] = {
    "profile": "standard",
    "schedule": {"fixed": [WAIT_S, WAIT_S, WAIT_S]},
    "jitter": None,
    "breaker": None,
    "adaptive": False,
}


def run(setup: Setup, peak: float | None = None) -> list[dict[str, Any]]:
    """Measure the peak unless it is given (deliveries/s), then retries at half of it."""
    if peak is None:
        short = Setup(**{**{f: getattr(setup, f) for f in Setup.__struct_fields__}, "seconds": PEAK_S})
        peak = float(throughput.run(short, ("single",))[0]["delivered_per_s"])
    seconds = setup.seconds or SECONDS
    with stage(setup) as scene:
        scene.endpoint("/ok", ["steady"])
        for number in range(FAILING):
            scene.endpoint(f"/once/500/{number}", [f"failing.{number}"], policy=POLICY)
        setup.say.step(
            f"lateness: {peak / 2:.0f} deliveries/s and {RETRY_RATE:.0f} retries/s, {seconds:.0f} s"
        )
        offset = wall_minus_monotonic()
        steady = scene.load("steady", rate=peak / 2, connections=64, seconds=seconds + WAIT_S)
        names = tuple(f"failing.{number}" for number in range(FAILING))
        failing = scene.load(*names, rate=RETRY_RATE, connections=16, seconds=seconds)
        sent = [failing.wait(), steady.wait()]
        scene.drain(sum(one.deliveries for one in sent))
        offset = (offset + wall_minus_monotonic()) // 2
        arrivals = scene.sink.report()
        late = _late_ms(scene, arrivals, offset)
    expected = sum(one.deliveries for one in sent)
    return [
        {
            "scenario": "lateness",
            "peak_per_s": round(peak),
            "background_per_s": round(peak / 2),
            "background_kept_per_s": round(
                len(sent[1].rows()[0]) / max(0.001, (sent[1].ended_ns - sent[1].started_ns) / 1e9)
            ),
            "retries_per_s": RETRY_RATE,
            "retries_sampled": len(late),
            "lateness_ms": spread(late),
            "early": sum(value < EARLY_MS for value in late),
            "earliest_ms": round(min(late), 2) if late else None,
            "lost": expected - arrivals.answered,
            "duplicated": arrivals.duplicated,
        }
    ]


def wall_minus_monotonic() -> int:
    """Nanoseconds between the wall clock and the monotonic clock, now."""
    before = time.monotonic_ns()
    wall = time.time_ns()
    return wall - (before + time.monotonic_ns()) // 2


def second_arrivals(arrivals: Arrivals) -> dict[bytes, int]:
    """Instant of each delivery's second request."""
    first: set[bytes] = set()
    second: dict[bytes, int] = {}
    for delivery, _, at, _ in zip(*arrivals.rows(), strict=True):
        if delivery in first:
            second.setdefault(delivery, at)
        first.add(delivery)
    return second


def _late_ms(scene: Stage, arrivals: Arrivals, offset: int) -> list[float]:
    retried = second_arrivals(arrivals)
    scene.say.step(f"lateness: reading the history of {min(SAMPLE, len(retried))} deliveries")
    chosen = list(retried.items())[:: max(1, len(retried) // SAMPLE)][:SAMPLE]
    late = []
    for delivery, at in chosen:
        attempts = scene.api.attempts(delivery.decode())
        due = attempts[0]["next_at"] if attempts else None
        if due is not None:
            late.append(((at + offset) / 1e9 - datetime.fromisoformat(due).timestamp()) * 1000)
    return late
