"""`isolation`: what healthy endpoints notice of dead ones that get as many events as they do.

Healthy endpoints share 200 events/s; hanging ones (a request arrives, no answer ever) share 200 more.
Two windows are told apart: from the first event until every hanging endpoint's breaker is open, and the
minute after. The run without hanging endpoints is the measure of both.
"""

from __future__ import annotations

import time
from typing import Any

from lab.bench import processes
from lab.bench.figures import Joined
from lab.bench.stage import Load, Setup, Sink, Stage, stage

HANGING = (0, 10, 100)
HEALTHY = 10
RATE = 200.0  # events/s to each group
AFTER_S = 60.0
OPENING_S = 240.0  # breakers that are not open by then are counted as they are
WARM_UP_S = 3.0
GRACE_MS = 250  # what is sent in the last moment may still be on its way when the load ends
CONNECTIONS = 16


def run(setup: Setup, hanging: tuple[int, ...] = HANGING, policy: Any = None) -> list[dict[str, Any]]:
    """One result per number of hanging endpoints; ratios are to the first of them.

    `policy` is that of the hanging endpoints (None: the server's default).
    """
    results = [_one(setup, number, policy) for number in hanging]
    for result in results:
        for window in ("before", "after"):
            _compare(result[window], results[0]["after"])
    return results


def _compare(window: dict[str, Any], base: dict[str, Any]) -> None:
    own, other = window["arrival_ms"]["p95"], base["arrival_ms"]["p95"]
    window["p95_ratio"] = round(own / other, 2) if own and other else None
    window["p95_more_ms"] = round(own - other, 2) if own and other else None


def _one(setup: Setup, hanging: int, policy: Any) -> dict[str, Any]:
    with stage(setup) as scene:
        healthy_types = tuple(f"healthy.{number}" for number in range(HEALTHY))
        for number, name in enumerate(healthy_types):
            scene.endpoint(f"/ok/{number}", [name])
        dead_sink = _hang(scene, hanging, policy) if hanging else None
        setup.say.step(f"isolation: warming up, {hanging} hanging endpoints")
        warm = scene.load(*healthy_types, rate=RATE, connections=CONNECTIONS, seconds=WARM_UP_S).wait()
        scene.drain(warm.deliveries)
        scene.sink.reset()
        return _measure(scene, setup, hanging, healthy_types, dead_sink)


def _hang(scene: Stage, number: int, policy: Any) -> Sink:
    sink = scene.another_sink()
    for index in range(number):
        scene.endpoint(f"/hang/{index}", [f"hanging.{index}"], policy=policy, sink=sink)
    return sink


def _measure(
    scene: Stage, setup: Setup, hanging: int, healthy: tuple[str, ...], dead_sink: Sink | None
) -> dict[str, Any]:
    after_s = setup.seconds or AFTER_S
    shape: dict[str, Any] = {"rate": RATE, "connections": CONNECTIONS, "seconds": OPENING_S + after_s + 30}
    cpu = processes.cpu_seconds(scene.server.pid)
    began = time.monotonic_ns()
    load = scene.load(*healthy, **shape)
    dead_load = scene.load(*(f"hanging.{i}" for i in range(hanging)), **shape) if hanging else None
    setup.say.step(f"isolation: {hanging} hanging endpoints, until their breakers are open")
    opened = _until_open(scene, hanging)
    opened_ns = time.monotonic_ns()
    setup.say.step(f"isolation: {opened} of {hanging} breakers open, {after_s:.0f} s more")
    _watch(scene, after_s)
    sent = load.stop()
    dead = dead_load.stop() if isinstance(dead_load, Load) else None
    time.sleep(GRACE_MS / 1000)
    _until_arrived(scene, sent.deliveries)
    joined = Joined([sent], scene.sink.report())
    spent = processes.cpu_seconds(scene.server.pid) - cpu
    return {
        "scenario": f"isolation{hanging}",
        "hanging": hanging,
        "breakers_open": opened,
        "opened_after_s": round((opened_ns - began) / 1e9, 1) if hanging else None,
        "accepted": len(joined.accepted),
        "delivered": joined.delivered,
        "accept_ms": joined.accept_ms(),
        "arrival_ms": joined.arrival_ms(),
        "before": {"arrival_ms": joined.arrival_ms(until=opened_ns)},
        "after": {"arrival_ms": joined.arrival_ms(since=opened_ns)},
        "not_arrived_at_end": joined.missing_at(sent.ended_ns + GRACE_MS * 1_000_000),
        "lost": joined.lost,
        "duplicated": joined.duplicated,
        "hanging_accepted": len(dead.rows()[0]) if dead else 0,
        "hanging_requests": dead_sink.count().requests if dead_sink else 0,
        "server_cpu_s": round(spent, 1),
        "peak_memory_mb": processes.memory_mb(scene.server.pid)[1],
        "generator": {"lag_p95_ms": sent.lag_ms},
    }


def _until_open(scene: Stage, wanted: int) -> int:
    """Wait until so many breakers are open; how many are."""
    began = time.monotonic()
    while True:
        opened = scene.api.open_breakers()
        waited = time.monotonic() - began
        if opened >= wanted or waited > OPENING_S:
            return opened
        scene.say.tick(f"{opened} of {wanted} breakers open after {waited:.0f} s")
        time.sleep(1)


def _watch(scene: Stage, seconds: float) -> None:
    """Let time pass, looking at the breakers as often as before: the windows differ in nothing else."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        scene.api.open_breakers()
        scene.say.tick(f"{left:.0f} s left")
        time.sleep(min(1.0, left))


def _until_arrived(scene: Stage, expected: int) -> None:
    """Wait for healthy deliveries alone; the lanes are full of the dead ones."""
    scene.drain(expected, waiting=())
