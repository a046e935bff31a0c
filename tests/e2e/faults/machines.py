"""What nodes share goes away and comes back: the ledger, the broker, the shared health. Nobody has to help."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from lab.bench.server import KEY
from tests.e2e.calling import Caller, until
from tests.e2e.faults.fleet import LANES, PER_NODE, SMALL, Run, private, running, uptime
from tests.e2e.faults.judging import Hit
from tests.e2e.faults.place import Place
from tests.servers import CuttingProxy, Postgres, Rabbits, Redis
from tests.servers.proxy import When
from tests.servers.rabbitmq import Rabbit

DATABASE = "surehook"
CUTS, FLUSHES = 4, 3  # in one round
IN_HAND_S = 2.0  # what workers had been given already is sent by then
STILL_MOST_S = 15.0  # until work goes on beside a broker that stands still
SPRINGS_S = 5.0  # under load, what a trap waits for comes by many times a second
# What a client sends where something is committed: the end of an explicit transaction, which changes of the configuration
# have, and the statements that are transactions of their own, known by what they carry (the load's payload; the headers
# of the sink's answers).
COMMITS = {"change": b"commit", "accept": b"doc_123", "record": b"content-length"}
# All connections at once: claims and beats carry nothing that they could be known by.
EVERYTHING = "everything"
MOMENTS: tuple[When, ...] = ("seen", "sent", "answered")


def ledger() -> Postgres:
    """A PostgreSQL with an empty database for the product."""
    server = Postgres.new()
    server.ask(f"create database {DATABASE}")
    return server


def postgres_stop(place: Place) -> dict[str, Any]:
    """PostgreSQL is stopped at once and started again under load: 503 with Retry-After meanwhile, and nothing is lost."""
    with private(ledger) as server, running(SMALL, server.url(DATABASE)) as run:
        figures = stop_postgres(run, server, place.dice, place.rounds)
        return {**run.end(per_fault=PER_NODE * len(SMALL)).figures, **figures}


def stop_postgres(run: Run, server: Postgres, dice: random.Random, times: int) -> dict[str, float]:
    """Stop it and start it, so often: how soon the APIs said so, and how soon the fleet sent again."""
    told = back = 0.0
    for _ in range(times):
        uptime(dice)
        begun = server.stop(immediate=True)
        gone = time.monotonic_ns()
        told = max(told, run.refused_without_ledger())
        uptime(dice, 0.6, 2.5)
        run.away.append((gone, time.monotonic_ns()))
        server.start()
        over = time.monotonic_ns()
        back = max(back, run.sends_after(over))
        run.hits.append(Hit(begun, over, over, "stop"))
    uptime(dice)
    return {"told_s": round(told, 2), "first_send_s": round(back, 2)}


def commit_cut(place: Place) -> dict[str, Any]:
    """A connection is cut during a commit, before or after it has happened: the same ids are neither lost nor twice there."""
    with private(ledger) as server, CuttingProxy(server.port) as proxy:
        with running(SMALL, through(proxy, server)) as run:
            kinds = cut_commits(run, proxy, place.dice, CUTS * place.rounds)
            return {**run.end(per_fault=PER_NODE).figures, **kinds}


def through(proxy: CuttingProxy, server: Postgres) -> str:
    """The way to the database that leads through the proxy."""
    return server.url(DATABASE).replace(f":{server.port}/", f":{proxy.port}/")


def cut_commits(run: Run, proxy: CuttingProxy, dice: random.Random, times: int) -> dict[str, int]:
    """Cut so many commits, of kinds and at moments that the seed draws; how many of each kind."""
    kinds: Counter[str] = Counter()
    for number in range(times):
        uptime(dice, 0.3, 0.8)
        kind, when, before = dice.choice([*sorted(COMMITS), EVERYTHING]), dice.choice(MOMENTS), proxy.cuts
        kinds[f"cut_{kind}"] += 1
        if kind == EVERYTHING:
            at = time.monotonic_ns()
            assert proxy.cut() > 0
            run.hits.append(Hit(at, at, at, "cut"))
            continue
        proxy.cut_at(COMMITS[kind], when=when)
        if kind == "change":
            change(run, f"made-{number}")
        until(lambda count=before: proxy.cuts > count, f"a cut of {kind}, {when}", SPRINGS_S)
        at = proxy.cut_ns[-1]
        run.hits.append(Hit(at, at, at, "cut"))
    uptime(dice)
    return dict(kinds)


def change(run: Run, tenant: str) -> None:
    """Make a tenant while its commit is cut: what is answered 201 is there, and nothing else is answered than 503."""
    caller = Caller(run.fleet.apis[0].port, KEY)
    answer = caller.ask("POST", "/v1/tenants", {"id": tenant, "name": tenant})
    assert answer.status in (201, 503), answer
    if answer.status == 201:
        caller.get(f"/v1/tenants/{tenant}")
    caller.close()


def rabbit_kill(place: Place) -> dict[str, Any]:
    """A node of a RabbitMQ cluster of three is killed under load and comes back: work goes on, and none is done twice."""
    with private(ledger) as server, private(lambda: Rabbits.new(3)) as rabbits:
        with CuttingProxy(*(node.port for node in rabbits.nodes)) as proxy:
            broker = f"amqp://guest:guest@127.0.0.1:{proxy.port}/"
            with running(LANES, server.url(DATABASE), SUREHOOK_BROKER_URL=broker) as run:
                for _ in range(place.rounds):
                    uptime(place.dice)
                    victim = place.dice.choice(rabbits.nodes)
                    at = victim.kill()
                    run.sends_after(time.monotonic_ns())
                    uptime(place.dice, 1.0, 4.0)
                    victim.start()
                    run.hits.append(Hit(at, time.monotonic_ns(), at, "broker"))
                    run.sends_after(time.monotonic_ns())
                uptime(place.dice)
                return run.end(per_fault=PER_NODE * len(LANES)).figures


def rabbit_stands_still(place: Place) -> dict[str, Any]:
    """RabbitMQ is frozen under load, and then in its memory alarm: work goes on within 15 s, and is brought again afterwards."""
    with private(ledger) as server, private(Rabbits.new) as rabbits:
        with running(LANES, server.url(DATABASE), SUREHOOK_BROKER_URL=rabbits.nodes[0].url) as run:
            figures: dict[str, float] = {}
            for _ in range(place.rounds):
                for name, stand, go_on in standstills(rabbits.nodes[0]):
                    uptime(place.dice)
                    stand()
                    at = time.monotonic_ns()
                    quiet = at + int(IN_HAND_S * 1e9)
                    still = IN_HAND_S + run.sends_after(quiet, STILL_MOST_S)
                    figures[name] = max(figures.get(name, 0.0), round(still, 2))
                    uptime(place.dice, 4.0, 8.0)
                    go_on()
                    run.sends_after(time.monotonic_ns())
                    uptime(place.dice, 2.0, 4.0)
            return {**run.end(per_fault=0).figures, **figures, "faults": 2 * place.rounds}


def standstills(node: Rabbit) -> list[tuple[str, Callable[[], object], Callable[[], object]]]:
    """By name of what is measured: how the broker is brought to it, and how it is let go on."""
    watermark = partial(node.ctl, "set_vm_memory_high_watermark", "absolute")
    return [
        ("frozen_s", node.freeze, node.thaw),
        ("alarm_s", partial(watermark, "1MB"), partial(watermark, "1GB")),
    ]


def queue_delete(place: Place) -> dict[str, Any]:
    """A lane's queue is deleted under load with what is in it: the ledger knows, and hands it over again."""
    with private(ledger) as server, private(Rabbits.new) as rabbits:
        node = rabbits.nodes[0]
        with running(LANES, server.url(DATABASE), SUREHOOK_BROKER_URL=node.url) as run:
            queues = sorted(node.queues())
            for number in range(len(queues) * place.rounds):
                uptime(place.dice)
                at = time.monotonic_ns()
                node.ctl("delete_queue", queues[number % len(queues)])
                over = time.monotonic_ns()
                run.hits.append(Hit(at, over, at, "queue"))
                run.sends_after(over)
            uptime(place.dice)
            return run.end(per_fault=PER_NODE * len(LANES)).figures


def redis_flush(place: Place) -> dict[str, Any]:
    """Redis is emptied under load: deliveries go on as if nothing had happened."""
    with private(ledger) as server, private(Redis.new) as redis:
        with running(SMALL, server.url(DATABASE), SUREHOOK_REDIS_URL=redis.url) as run:
            for _ in range(FLUSHES * place.rounds):
                uptime(place.dice)
                assert redis.ask("FLUSHALL") == b"OK"
                run.sends_after(time.monotonic_ns())
            uptime(place.dice)
            figures = run.end(per_fault=0).figures  # nothing of this excuses a repeat, so there are no hits
            return {**figures, "faults": FLUSHES * place.rounds}


def redis_restart(place: Place) -> dict[str, Any]:
    """Redis is killed under load, stays away, and comes back empty: nodes decide for themselves meanwhile."""
    with private(ledger) as server, private(Redis.new) as redis:
        with running(SMALL, server.url(DATABASE), SUREHOOK_REDIS_URL=redis.url) as run:
            slowest = 0.0
            for _ in range(place.rounds):
                uptime(place.dice)
                at = redis.kill()
                slowest = max(slowest, run.sends_after(at))
                uptime(place.dice, 0.5, 3.0)
                redis.start()
                run.sends_after(time.monotonic_ns())
            uptime(place.dice)
            figures = run.end(per_fault=0).figures
            return {**figures, "faults": place.rounds, "first_send_s": round(slowest, 2)}
