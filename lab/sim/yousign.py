"""The published case of a signature platform, on virtual time.

About 4,000 messages in 5 minutes, to three endpoints: one answers in 500 ms, one in 2 s, one never within
10 s. With one queue for everything hardly anything was delivered in 25 minutes; with a fail-fast lane, a
retry lane and a breaker everything took about 10 minutes, one worker a queue in both cases.

Two modes: `lanes` is the production server with its default slots; `single_queue` is a plain sender on the
same network and the same wire client: one line for first calls and retries alike, one timeout, no breaker.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import Any, Literal

from lab.sim.clock import EPOCH_MS, SimClock
from lab.sim.dialer import SimDialer
from lab.sim.loop import Process, SimLoop
from lab.sim.loop import run as run_loop
from lab.sim.parts import MemoryShelf, assemble
from lab.sim.receivers import Mood, Receiver
from lab.sim.resolver import SimResolver
from lab.sim.swarm import Customer, Options
from lab.sim.world import NETWORK, World
from surehook.core import ids
from surehook.core.envelope import EventIn
from surehook.delivery.settings import EngineSettings
from surehook.ports.transport import Answer, Request
from surehook.wire.client import WireClient
from surehook.wire.settings import WireSettings

Mode = Literal["lanes", "single_queue"]
# An event is a message to each endpoint. The case with as many events as they had messages asks for three times as much.
EVENTS, EVENTS_THRICE, PUBLISH_S = 1_333, 4_000, 300.0
HORIZON_S = 1_500.0  # the published 25 minutes
TIMEOUT_S = 10.0
WAITS_S = (120.0, 360.0, 1_800.0, 3_600.0)  # before a retry, as published; the rest lies beyond the horizon
# Their timeouts, schedule and breaker. As it is, each event for a slow endpoint has two calls, the second two minutes after
# the first; with `adaptive` an endpoint known to be slow has one patient call.
AS_IT_IS: dict[str, Any] = {"profile": "yousign"}
ADAPTIVE: dict[str, Any] = {**AS_IT_IS, "adaptive": True}
CASES = (
    ("500ms", Mood(treatment="slow", answer_s=(0.45, 0.5))),
    ("2s", Mood(treatment="slow", answer_s=(1.9, 2.0))),
    ("never", Mood(treatment="hanging")),
)


def run_yousign(
    *,
    seed: int = 1,
    mode: Mode = "lanes",
    policy: dict[str, Any] = AS_IT_IS,
    events: int = EVENTS,
    publish_s: float = PUBLISH_S,
    slots: int | None = None,
    horizon_s: float = HORIZON_S,
) -> dict[str, Any]:
    """Play the case and return its figures.

    policy     of the endpoints; the single queue knows no policies
    slots      of the single queue in all; None: as many as both lanes have together by default
    horizon_s  when to stop looking, in seconds from the first publish

    `wanted` and `delivered` count deliveries to the two endpoints that answer. `done_after_last_publish_s` is
    None where some had not arrived by the horizon.
    """
    loop = SimLoop(seed)
    world = World(_options(seed, publish_s, policy), loop, open_ledger=MemoryShelf().open, assemble=assemble)
    play = _lanes if mode == "lanes" else _single_queue
    default = EngineSettings()
    in_all = default.slots_first + default.slots_retry if slots is None else slots
    figures: dict[str, Any] = run_loop(play(world, events, publish_s, horizon_s, in_all), loop=loop)
    return {
        "scenario": f"yousign-simulated-{mode.replace('_', '-')}",
        "seed": seed,
        "policy": policy if mode == "lanes" else None,
        "slots": {"first": default.slots_first, "retry": default.slots_retry}
        if mode == "lanes"
        else {"all": in_all},
        "events": events,
        "wanted": 2 * events,
        **figures,
        "virtual_s": round(loop.time() - world.began, 1),
    }


def _options(seed: int, publish_s: float, policy: dict[str, Any]) -> Options:
    customers = [
        Customer(
            tenant="t1", host=f"{name}.example", address=f"198.51.100.{number + 1}", port=443, policy=policy,
            event_types=("*",), moods=[(0.0, mood)],
        )
        for number, (name, mood) in enumerate(CASES)
    ]  # fmt: skip
    return Options(
        seed=seed, faults=(), nodes=1, customers=customers, publishes=[], orders=[], blows=[], storm_s=publish_s,
        calm_s=0.0, engine={},
    )  # fmt: skip


async def _lanes(
    world: World, events: int, publish_s: float, horizon_s: float, in_all: int
) -> dict[str, Any]:
    """The production server."""
    await world.settle_in()
    machine = world.machines[0]
    world.begin(machine.live())
    await machine.serving.wait()
    meter = Meter(world, events, publish_s)
    published: dict[str, float] = {}

    async def publish(number: int) -> None:
        await asyncio.sleep(number * publish_s / events)
        at = world.loop.time()
        event = EventIn(tenant="t1", type="signature.done", data=json.dumps({"n": number}).encode())
        (taken,) = await machine.call(lambda server: server.take([event], [None]))
        published[ids.text(ids.EVENT, taken.event)] = at

    for number in range(events):
        world.begin(publish(number))
    await meter.watch(horizon_s)
    breakers = sorted(key for _, key in world.book.breakers)
    figures = meter.figures(published)
    await machine.stop()
    world.check()
    return {**figures, "breakers_open": breakers}


async def _single_queue(
    world: World, events: int, publish_s: float, horizon_s: float, in_all: int
) -> dict[str, Any]:
    """One line, `in_all` workers, one timeout; a failure goes back to the end of the line after its wait."""
    await world.settle_in()
    clock = SimClock(world.loop)
    client = WireClient(
        clock=clock,
        resolver=SimResolver(world.names, world.loop, world.seed.stream("resolver")),
        dialer=SimDialer(world.network, Process("single")),
        settings=WireSettings(allow_http=True, allow_networks=(NETWORK,)),
    )
    for receiver in world.receivers:
        receiver.verify = lambda headers, body, now: True
        receiver.tell = lambda seen: None
    targets = [client.target(f"http://{host}.example:443/hook", tenant="t1") for host, _ in CASES]
    meter = Meter(world, events, publish_s)
    published: dict[str, float] = {}
    line: deque[tuple[int, int, int]] = deque()  # event, endpoint, tries before
    waiting = asyncio.Semaphore(0)

    def join(number: int, endpoint: int, tries: int) -> None:
        line.append((number, endpoint, tries))
        waiting.release()

    async def work() -> None:
        while True:
            await waiting.acquire()
            number, endpoint, tries = line.popleft()
            answer = await _send(client, _request(targets[endpoint], number, endpoint, tries))
            if answer.status is None and tries < len(WAITS_S):
                world.loop.call_later(WAITS_S[tries], join, number, endpoint, tries + 1)

    def publish(number: int) -> None:
        published[_name(number)] = world.loop.time()
        for endpoint in range(len(CASES)):
            join(number, endpoint, 0)

    workers = [asyncio.ensure_future(work()) for _ in range(in_all)]
    for number in range(events):
        world.loop.call_later(number * publish_s / events, publish, number)
    await meter.watch(horizon_s)
    for worker in workers:
        worker.cancel()
    await client.close()
    return {**meter.figures(published), "breakers_open": []}


class Meter:
    """Watches how much has arrived at the two endpoints that answer."""

    def __init__(self, world: World, events: int, publish_s: float) -> None:
        self._world = world
        self._wanted = 2 * events
        self._began = world.loop.time()
        self._last_publish = self._began + publish_s * (events - 1) / events
        self._done_at: float | None = None

    async def watch(self, horizon_s: float) -> None:
        """Until everything has arrived, or the horizon."""
        loop = self._world.loop
        while loop.time() < self._began + horizon_s:
            await asyncio.sleep(0.1)
            self._world.check()
            if self._arrived() >= self._wanted:
                self._done_at = loop.time()
                return

    def _arrived(self) -> int:
        return sum(len(_answered(receiver)) for receiver in self._world.receivers[:2])

    def figures(self, published: dict[str, float]) -> dict[str, Any]:
        done = None if self._done_at is None else round(self._done_at - self._last_publish, 1)
        late = {}
        for (name, _), receiver in zip(CASES[:2], self._world.receivers, strict=False):
            waits = sorted(
                at - published[event] for event, at in _answered(receiver).items() if event in published
            )
            late[name] = {f"p{share}": _share(waits, share) for share in (50, 95, 99, 100)}
        return {
            "delivered": self._arrived(),
            "done_after_last_publish_s": done,
            "arrival_s": late,
            "requests": {
                name: len(r.seen) for (name, _), r in zip(CASES, self._world.receivers, strict=True)
            },
        }


def _answered(receiver: Receiver) -> dict[str, float]:
    """Instant at which each event was first answered with a success."""
    first: dict[str, float] = {}
    for seen in receiver.seen:
        if seen.answered_at is not None and seen.event not in first:
            first[seen.event] = seen.answered_at
    return first


def _share(ordered: list[float], percent: int) -> float | None:
    return round(ordered[min(len(ordered) - 1, len(ordered) * percent // 100)], 3) if ordered else None


def _name(number: int) -> str:
    return ids.text(ids.EVENT, ids.uuid7(EPOCH_MS, number.to_bytes(10, "big")))


def _request(target: Any, number: int, endpoint: int, tries: int) -> Request:
    name = _name(number)
    headers = (
        f"webhook-id: {name}\r\nwebhook-delivery-id: {name}-{endpoint}\r\nwebhook-attempt: {tries + 1}\r\n"
        f"webhook-retry-count: {tries}\r\nwebhook-timestamp: 0\r\n"
    )
    return Request(
        target=target,
        headers=headers.encode(),
        body=json.dumps({"id": name}).encode(),
        timeout_s=TIMEOUT_S,
        connect_timeout_s=TIMEOUT_S,
    )


async def _send(client: WireClient, request: Request) -> Answer:
    done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    client.send(request, lambda answer: None if done.done() else done.set_result(answer))
    return await done
