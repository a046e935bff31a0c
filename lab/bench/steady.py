"""One measured run of a load to endpoints that answer: what `throughput` and `latency` share."""

from __future__ import annotations

import time
from typing import Any

from lab.bench import processes
from lab.bench.figures import Joined, batch_sizes
from lab.bench.stage import Stage


def measure(scene: Stage, scenario: str, warm_up: dict[str, Any], plan: dict[str, Any]) -> dict[str, Any]:
    """Warm up, run `plan`, drain; the scenario's figures as the benches print them.

    Endpoints must exist already and answer every request with 2xx, or nothing is ever drained.
    """
    scene.say.step(f"{scenario}: warming up")
    warm = scene.load("document.signed", **warm_up).wait()
    scene.drain(warm.deliveries)
    scene.sink.reset()
    processes.reset_peak(scene.server.pid)
    metrics, cpu = scene.api.metrics(), processes.cpu_seconds(scene.server.pid)
    scene.say.step(f"{scenario}: measuring for {plan['seconds']:.0f} s")
    began = time.monotonic()
    sent = scene.load("document.signed", **plan).wait()
    load_s = (sent.ended_ns - sent.started_ns) / 1e9
    ended = max(scene.drain(sent.deliveries), began)
    spent = processes.cpu_seconds(scene.server.pid) - cpu
    arrivals = scene.sink.report()
    joined = Joined([sent], arrivals)
    whole_s = ended - sent.started_ns / 1e9
    delivered = joined.delivered
    rss, peak = processes.memory_mb(scene.server.pid)
    return {
        "scenario": scenario,
        "seconds": round(whole_s, 2),
        "accepted": len(joined.accepted),
        "delivered": delivered,
        "accepted_per_s": round(len(joined.accepted) / load_s),
        "delivered_per_s": round(delivered / whole_s),
        "server_cpu_us": round(spent / max(1, delivered) * 1e6, 1),
        "accept_ms": joined.accept_ms(),
        "arrival_ms": joined.arrival_ms(),
        "lost": joined.lost,
        "duplicated": joined.duplicated,
        "refused": sent.refused,
        "unanswered": sent.unanswered,
        "batch_sizes": batch_sizes(metrics, scene.api.metrics()),
        "memory_mb": rss,
        "peak_memory_mb": peak,
        "generator": {"lag_p95_ms": sent.lag_ms, "cpu_us": sent.cpu_us},
        "sink": {"cpu_us": arrivals.cpu_us},
    }
