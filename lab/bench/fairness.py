"""Effects of what one tenant is owed on another: `python -m lab.bench.fairness [--part owed,crowd …] [--ledger sqlite,pg]`.

A tenant publishes 10 events/s to a receiver that answers at once; accept to arrival is measured alone and then beside

    owed    `--megabytes` in events of 20 KB for one receiver that answers after 1.5 s
    crowd   20 events of 255 KB to `--endpoints` endpoints whose receivers answer after 1.5 s
    claims  `--rows` due rows of one endpoint that answers after 1.5 s, which a worker finds as it starts. Here 20 events are
            published at once, and the last arrival counts (PostgreSQL alone)
    deep    `--due` due rows of one such endpoint, found at a start
    wide    the same of 1,000 endpoints
    publisher  a tenant that publishes events to `--endpoints` endpoints as fast as it can; the other publishes 100 events/s
    batch   one batch of `--events` events to 2,614 endpoints, as many beside it; also, after how long it was answered

On PostgreSQL, a private server, API and worker are apart in `claims`, `deep` and `wide`. Beside each figure stands its
bound; the program ends with 1 where one is broken. Figures of a machine that does nothing else.
"""
# ruff: noqa: T201 (a program that prints)

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from lab.bench import processes
from lab.bench.fairness_fill import fill
from lab.bench.figures import Joined
from lab.bench.records import Plan
from lab.bench.server import KEY, Launch, Server, product_command
from lab.bench.stage import TENANT, Load, Setup, Sink, Stage, receiver, stage
from surehook.core import ids
from tests.servers.postgres import Postgres

OTHER = "other"
RATE = 10.0  # events/s of the tenant that is measured
# Its publishes wait for the server and not for each other. With four, at 100/s on a busy machine, its own line made most of
# the figure: p95 was 0.7 to 1.9 s there, and 0.1 to 0.2 from the server's taking in to its answer.
CONNECTIONS = 32
SLOW = "/d/1500"  # answers after so many milliseconds
LATE_S = 30.0  # what has not arrived by then is counted as lost
WIDE_ENDPOINTS = 1_000
SETTLED_S = 3.0  # from a start beside a backlog until it is measured
START_MS = 500.0  # the last of twenty events, as a worker starts beside a backlog
MORE_MS = 10.0  # … or twice as long as alone, where that is more
MEMORY_MB = 600.0
BUSY_RATE, BUSY_FACTOR = 100.0, 1.5  # beside one that publishes meanwhile
BATCH_ENDPOINTS, BATCH_S = 2_614, 600.0


def publish(port: int, tenant: str, **plan: Any) -> Load:
    """A generator for a tenant."""
    return Load(Plan(port=port, key=KEY, tenant=tenant, types=(tenant,), **plan))


def arrivals(port: int, sink: Sink, **plan: Any) -> Joined:
    """Experience of the measured tenant's events."""
    sink.reset()
    sent = publish(port, OTHER, connections=CONNECTIONS, **plan).wait()
    until = time.monotonic() + LATE_S
    while sink.count().answered < sent.deliveries and time.monotonic() < until:
        time.sleep(0.02)
    return Joined([sent], sink.report())


def figures(joined: Joined) -> dict[str, Any]:
    return {"accept_ms": joined.accept_ms(), "arrival_ms": joined.arrival_ms(), "lost": joined.lost}


def judged(
    alone: Joined,
    beside: Joined,
    servers: dict[str, Server],
    *,
    more_ms: float = 0.0,
    factor: float = 2.0,
) -> dict[str, Any]:
    """Both figures, and p95 of arrivals and the peaks of memory with their bounds."""
    before, after = alone.arrival_ms()["p95"] or 0.0, beside.arrival_ms()["p95"]
    bound = max(factor * before, before + more_ms)
    peaks = {name: processes.memory_mb(server.pid)[1] for name, server in servers.items()}
    return {
        "alone": figures(alone),
        "beside": figures(beside),
        "p95_ms": {"alone": before, "beside": after, "bound": round(bound, 2)},
        "peak_memory_mb": {**peaks, "bound": MEMORY_MB},
        "holds": after is not None
        and after <= bound
        and not beside.lost
        and max(peaks.values()) <= MEMORY_MB,
    }


def beside(scene: Stage, seconds: float, flood: dict[str, Any]) -> dict[str, Any]:
    """Alone, and while another tenant is owed what `flood` brings."""
    port, server = scene.server.port, scene.server
    scene.api.tenant(OTHER)
    scene.api.endpoint(OTHER, scene.sink.url("/ok/0"), [OTHER], None)
    arrivals(port, scene.sink, rate=RATE, seconds=1.0)
    alone = arrivals(port, scene.sink, rate=RATE, seconds=seconds)
    sent = publish(port, TENANT, **flood).wait()
    began, used = time.monotonic(), processes.cpu_seconds(server.pid)
    joined = arrivals(port, scene.sink, rate=RATE, seconds=seconds)
    used = processes.cpu_seconds(server.pid) - used
    return {
        "owed_deliveries": sent.deliveries,
        "server_cpu": round(used / (time.monotonic() - began), 2),
        **judged(alone, joined, {"server": server}, more_ms=MORE_MS),
    }


def owed(url: str | None, wanted: argparse.Namespace) -> dict[str, Any]:
    with stage(Setup(database_url=url)) as scene:
        slow = scene.another_sink()
        scene.api.endpoint(TENANT, slow.url(SLOW), [TENANT], None)
        events = (wanted.megabytes << 20) // 20_000
        flood = {"mode": "batch", "batch": 50, "connections": 4, "events": events, "payload_bytes": 20_000}
        return beside(scene, wanted.seconds, {**flood, "seconds": 60.0})


def crowd(url: str | None, wanted: argparse.Namespace) -> dict[str, Any]:
    with stage(Setup(database_url=url)) as scene:
        slow = scene.another_sink()
        for number in range(wanted.endpoints):
            scene.api.endpoint(TENANT, slow.url(f"{SLOW}/{number}"), [TENANT], None)
        flood = {
            "connections": 1,
            "events": 20,
            "payload_bytes": 255_000,
            "seconds": 60.0,
            "patience_s": 60.0,
        }
        return beside(scene, wanted.seconds, flood)


def publishing(
    url: str | None, wanted: argparse.Namespace, endpoints: int, flood: dict[str, Any], *, to_its_end: bool
) -> dict[str, Any]:
    """Alone, and while another tenant publishes events to many endpoints, which answer at once."""
    with stage(Setup(database_url=url)) as scene:
        many, port = scene.another_sink(), scene.server.port
        for number in range(endpoints):
            scene.api.endpoint(TENANT, many.url(f"/ok/{number}"), [TENANT], None)
        scene.api.tenant(OTHER)
        scene.api.endpoint(OTHER, scene.sink.url("/ok/0"), [OTHER], None)
        arrivals(port, scene.sink, rate=RATE, seconds=1.0)
        alone = arrivals(port, scene.sink, rate=BUSY_RATE, seconds=wanted.seconds)
        load = publish(port, TENANT, seconds=BATCH_S, patience_s=BATCH_S, **flood)
        arrivals(port, scene.sink, rate=BUSY_RATE, seconds=1.0)  # until it is in full swing
        joined = arrivals(port, scene.sink, rate=BUSY_RATE, seconds=wanted.seconds)
        told = judged(alone, joined, {"server": scene.server}, more_ms=MORE_MS, factor=BUSY_FACTOR)
        if not to_its_end:
            return {"its_deliveries": load.stop().deliveries, **told}
        company = publish(port, OTHER, connections=1, rate=RATE, seconds=BATCH_S)
        sent = load.wait()
        company.stop()
        took = (sent.ended_ns - sent.started_ns) / 1e9 if sent.deliveries else None
        return {"its_deliveries": sent.deliveries, "answered_s": took, **told}


def publisher(url: str | None, wanted: argparse.Namespace) -> dict[str, Any]:
    return publishing(url, wanted, wanted.endpoints, {"connections": 4}, to_its_end=False)


def batch(url: str | None, wanted: argparse.Namespace) -> dict[str, Any]:
    flood = {"mode": "batch", "batch": wanted.events, "events": wanted.events, "connections": 1}
    return publishing(url, wanted, BATCH_ENDPOINTS, flood, to_its_end=True)


class Place(NamedTuple):
    """Servers on one ledger, of which `door` takes events, and two receivers."""

    door: Server
    servers: dict[str, Server]
    sink: Sink
    slow: Sink

    def start(self) -> None:
        for server in self.servers.values():
            server.start()
        for server in self.servers.values():
            server.wait_ready()

    def stop(self) -> None:
        for server in self.servers.values():
            server.stop()


@contextmanager
def place(url: str | None) -> Iterator[Place]:
    """One process on SQLite, an API process and a worker on PostgreSQL. They run."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="surehook-bench-")))
        servers: dict[str, Server] = {}
        for role in ("all",) if url is None else ("api", "worker"):
            (folder / role).mkdir()
            command = (*product_command(), "--role", role)
            servers[role] = Server(Launch(folder=folder / role, command=command, database_url=url))
            stack.callback(servers[role].stop)
        first = next(iter(servers.values()))
        made = Place(first, servers, stack.enter_context(receiver()), stack.enter_context(receiver()))
        made.start()
        for tenant in (TENANT, OTHER):
            first.api.tenant(tenant)
        first.api.endpoint(OTHER, made.sink.url("/ok/0"), [OTHER], None)
        yield made


def claims(url: str | None, wanted: argparse.Namespace) -> dict[str, Any]:
    with place(url) as here:
        api, worker, sink = here.door, here.servers["worker"], here.sink
        api.api.endpoint(TENANT, here.slow.url(SLOW), [TENANT], None)
        arrivals(api.port, sink, rate=RATE, seconds=1.0)
        alone = arrivals(api.port, sink, rate=RATE, seconds=wanted.seconds)
        worker.stop()
        flood = {"mode": "batch", "batch": 500, "connections": 4, "events": wanted.rows, "seconds": 120.0}
        rows = publish(api.port, TENANT, **flood).wait().deliveries
        worker.start()
        worker.wait_ready()
        at_start = arrivals(api.port, sink, mode="batch", batch=20, events=20, seconds=5.0)
        later = arrivals(api.port, sink, rate=RATE, seconds=wanted.seconds)
        result = judged(alone, later, here.servers)
        last = at_start.arrival_ms()["max"]
        result["last_of_twenty_at_start_ms"] = {"figure": last, "bound": START_MS}
        result["holds"] &= last is not None and last <= START_MS and not at_start.lost
        return {"rows": rows, **result}


def due(url: str | None, wanted: argparse.Namespace, endpoints: int) -> dict[str, Any]:
    """Alone, and beside due rows that the servers find as they start."""
    with place(url) as here:
        api, port = here.door.api, here.door.port
        made = [api.endpoint(TENANT, here.slow.url(f"{SLOW}/{n}"), [TENANT], None) for n in range(endpoints)]
        arrivals(port, here.sink, rate=RATE, seconds=1.0)
        alone = arrivals(port, here.sink, rate=RATE, seconds=wanted.seconds)
        here.stop()
        theirs = [ids.parse(ids.ENDPOINT, endpoint) for endpoint in made]
        took = fill(url, here.door.launch.folder / "surehook.db", theirs, wanted.due)
        here.start()
        time.sleep(SETTLED_S)
        joined = arrivals(port, here.sink, rate=RATE, seconds=wanted.seconds)
        return {"rows": wanted.due, "filled_s": round(took, 1), **judged(alone, joined, here.servers)}


def deep(url: str | None, wanted: argparse.Namespace) -> dict[str, Any]:
    return due(url, wanted, 1)


def wide(url: str | None, wanted: argparse.Namespace) -> dict[str, Any]:
    return due(url, wanted, WIDE_ENDPOINTS)


PARTS = {
    "owed": owed, "crowd": crowd, "claims": claims, "deep": deep, "wide": wide, "publisher": publisher, "batch": batch,
}  # fmt: skip
APART = ("claims",)  # parts that one process cannot play


def main() -> int:
    asks = argparse.ArgumentParser()
    asks.add_argument("--part", default=",".join(PARTS))
    asks.add_argument("--ledger", default="sqlite,pg")
    asks.add_argument("--seconds", type=float, default=8.0)
    asks.add_argument("--megabytes", type=int, default=64)
    asks.add_argument("--endpoints", type=int, default=5_000)
    asks.add_argument("--rows", type=int, default=50_000)
    asks.add_argument("--events", type=int, default=1_000)
    asks.add_argument("--due", type=int, default=1_000_000)
    wanted = asks.parse_args()
    holds = True
    with ExitStack() as stack:
        server: Postgres | None = None
        if "pg" in wanted.ledger.split(","):
            server = Postgres.new(durable=True)
            stack.callback(server.stop)
        for part in wanted.part.split(","):
            for ledger in wanted.ledger.split(","):
                url: str | None = None
                if ledger == "pg" and server is not None:
                    server.ask(f"create database {part}")
                    url = server.url(part)
                elif part in APART:
                    continue
                answer = PARTS[part](url, wanted)
                holds &= answer["holds"]
                print(json.dumps({f"{part} {ledger}": answer}), flush=True)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
