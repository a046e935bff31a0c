"""`yousign`: the published case of a signature platform, on the wall clock.

About 4,000 messages in 5 minutes, to three endpoints: one answers in 500 ms, one in 2 s, one never
within 10 s. Published for one worker a queue: hardly anything in 25 minutes before fail-fast lanes and
a breaker, everything in about 10 minutes with them.
"""

from __future__ import annotations

import time
from typing import Any

from lab.bench import processes
from lab.bench.figures import Joined, spread
from lab.bench.single_queue import single_queue
from lab.bench.stage import Setup, Stage, stage

# An event is a message to each endpoint. The case with as many events as they had messages asks for three times as much.
EVENTS, EVENTS_THRICE, PUBLISH_S = 1_333, 4_000, 300.0
ANSWERS_MS = (500, 2000, 12000)
# Their timeouts, schedule and breaker. As it is, each event for a slow endpoint has two calls, the second two minutes after
# the first; with `adaptive` an endpoint known to be slow has one patient call.
AS_IT_IS: dict[str, Any] = {"profile": "yousign"}
ADAPTIVE: dict[str, Any] = {**AS_IT_IS, "adaptive": True}
HORIZON_S = 1500.0  # the published 25 minutes
PUBLISHED = {
    "before": "hardly anything in 25 minutes",
    "after": "about 10 minutes",
}
AFTERWARDS_S = 180.0  # how long after the last publish we wait for the two that answer


def run(setup: Setup, *, real: bool = False, adaptive: bool = False) -> list[dict[str, Any]]:
    """The case on virtual time, or on the wall clock."""
    return run_real(setup, adaptive=adaptive) if real else run_virtual(setup)


def run_real(setup: Setup, *, adaptive: bool = False) -> list[dict[str, Any]]:
    """The case on the wall clock, and the model of a single queue with the same slots beside it. `adaptive`: with that
    policy, and three times as much."""
    publish_s = setup.seconds or PUBLISH_S
    policy, in_all = (ADAPTIVE, EVENTS_THRICE) if adaptive else (AS_IT_IS, EVENTS)
    events = round(in_all * publish_s / PUBLISH_S)
    with stage(setup) as scene:
        never = scene.another_sink()
        for answer in ANSWERS_MS:
            sink = never if answer > 10_000 else scene.sink
            scene.endpoint(f"/d/{answer}", ["*"], policy=policy, sink=sink)
        slots = {lane["name"]: int(lane["slots"]) for lane in scene.api.lanes()}
        setup.say.step(f"yousign: {events} events in {publish_s:.0f} s, slots {slots}")
        load = scene.load("signature.done", rate=events / publish_s, connections=8, seconds=publish_s)
        sent = _watched(scene, load, publish_s)
        wanted = 2 * len(sent.rows()[0])
        done = _until_answered(scene, wanted)
        real = _figures(scene, sent, wanted, done)
        real.update(policy=policy, slots=slots, third_requests=never.count().requests, published=PUBLISHED)
    return [real, *(_model(events, publish_s, number) for number in (sum(slots.values()), len(slots)))]


def run_virtual(setup: Setup) -> list[dict[str, Any]]:
    """The case in the simulated world: the production server with the profile as it is and with as many messages as were
    published; then three times as many, under `adaptive`, and beside it a plain single queue on the same network with as many
    slots in all, and with one worker for each of the two lanes."""
    from lab.sim.yousign import run_yousign

    results: list[dict[str, Any]] = []
    for mode, policy, events, slots in (
        ("lanes", AS_IT_IS, EVENTS, None),
        ("lanes", ADAPTIVE, EVENTS_THRICE, None),
        ("single_queue", AS_IT_IS, EVENTS_THRICE, None),
        ("single_queue", AS_IT_IS, EVENTS_THRICE, 2),
    ):
        setup.say.step(
            f"yousign on virtual time: {mode}, {events} events, slots {slots or 'as by default'}"
            + (f", policy {policy}" if mode == "lanes" else "")
        )
        results.append(run_yousign(mode=mode, policy=policy, events=events, slots=slots))  # type: ignore[arg-type]
    for result in results[:2]:
        result["published"] = PUBLISHED
    return results


def _watched(scene: Stage, load: Any, seconds: float) -> Any:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        count = scene.sink.count()
        scene.say.tick(f"{count.answered:,} delivered, {left:.0f} s of publishing left")
        time.sleep(min(1.0, left))
    return load.wait()


def _until_answered(scene: Stage, wanted: int) -> float | None:
    until = time.monotonic() + AFTERWARDS_S
    while time.monotonic() < until:
        if scene.sink.count().answered >= wanted:
            return time.monotonic()
        time.sleep(0.02)
    return None


def _figures(scene: Stage, sent: Any, wanted: int, done: float | None) -> dict[str, Any]:
    arrivals = scene.sink.report()
    joined = Joined([sent], arrivals)
    last_publish = max(sent.rows()[1], default=0) / 1e9
    by_path: dict[str, list[float]] = {name: [] for name in arrivals.paths}
    first: set[bytes] = set()
    for delivery, event, at, path in zip(*arrivals.rows(), strict=True):
        if delivery not in first and event in joined.meant:
            first.add(delivery)
            by_path[arrivals.paths[path]].append((at - joined.meant[event]) / 1e6)
    return {
        "scenario": "yousign-real",
        "events": len(joined.accepted),
        "wanted": wanted,
        "delivered": arrivals.answered,
        "done_after_last_publish_s": None if done is None else round(done - last_publish, 1),
        "first_call_ms": {name: spread(values) for name, values in by_path.items()},
        "accept_ms": joined.accept_ms(),
        "lost": wanted - arrivals.answered,
        "duplicated": arrivals.duplicated,
        "breakers_open": scene.api.open_breakers(),
        "lanes": scene.api.lanes(),
        "peak_memory_mb": processes.memory_mb(scene.server.pid)[1],
    }


def _model(events: int, publish_s: float, slots: int) -> dict[str, Any]:
    answers = tuple(answer / 1000 for answer in ANSWERS_MS)
    outcome = single_queue(
        events=events, publish_s=publish_s, answers_s=answers, slots=slots, horizon_s=HORIZON_S
    )
    return {
        "scenario": "yousign-single-queue-model",
        "slots": {"all": slots},
        "wanted": outcome.of,
        "delivered": outcome.delivered,
        "done_after_last_publish_s": None if outcome.done_s is None else round(outcome.done_s - publish_s, 1),
    }
