"""What one tenant notices of what another is owed: `python -m bench.fairness [--part owed,crowd,claims] [--seconds 8]`.

A tenant publishes 10 events/s to a receiver that answers at once; accept to arrival is measured alone and then beside

    owed    `--megabytes` in events of 20 KB for one receiver that answers after 1.5 s
    crowd   20 events of 255 KB to `--endpoints` endpoints whose receivers answer after 1.5 s
    claims  `--rows` due rows of one endpoint that answers after 1.5 s, which a worker finds as it starts: API and worker
            apart on a private PostgreSQL. Here 20 events are published at once, and the last arrival counts

`owed` and `crowd` run on SQLite, and with `--postgres` on a private PostgreSQL.
"""
# ruff: noqa: T201 (a program that prints)

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.servers.postgres import Postgres

from surehook.benches import processes
from surehook.benches.figures import Joined
from surehook.benches.records import Plan
from surehook.benches.server import KEY, Launch, Server, product_command
from surehook.benches.stage import TENANT, Load, Setup, Sink, Stage, receiver, stage

OTHER = "other"
RATE = 10.0  # events/s of the tenant that is measured
SLOW = "/d/1500"  # answers after so many milliseconds
LATE_S = 30.0  # what has not arrived by then is counted as lost


def publish(port: int, tenant: str, **plan: Any) -> Load:
    """A generator for a tenant."""
    return Load(Plan(port=port, key=KEY, tenant=tenant, types=(tenant,), **plan))


def arrivals(port: int, sink: Sink, **plan: Any) -> Joined:
    """What the measured tenant's events experience."""
    sink.reset()
    sent = publish(port, OTHER, connections=4, **plan).wait()
    until = time.monotonic() + LATE_S
    while sink.count().answered < sent.deliveries and time.monotonic() < until:
        time.sleep(0.02)
    return Joined([sent], sink.report())


def figures(joined: Joined) -> dict[str, Any]:
    return {"accept_ms": joined.accept_ms(), "arrival_ms": joined.arrival_ms(), "lost": joined.lost}


def beside(scene: Stage, seconds: float, flood: dict[str, Any]) -> dict[str, Any]:
    """Alone, and while another tenant is owed what `flood` brings."""
    scene.api.tenant(OTHER)
    scene.api.endpoint(OTHER, scene.sink.url("/ok/0"), [OTHER], None)
    arrivals(scene.server.port, scene.sink, rate=RATE, seconds=1.0)
    alone = arrivals(scene.server.port, scene.sink, rate=RATE, seconds=seconds)
    load = publish(scene.server.port, TENANT, **flood)
    sent = load.wait()
    began, used = time.monotonic(), processes.cpu_seconds(scene.server.pid)
    joined = arrivals(scene.server.port, scene.sink, rate=RATE, seconds=seconds)
    used = processes.cpu_seconds(scene.server.pid) - used
    return {
        "server_cpu": round(used / (time.monotonic() - began), 2),
        "alone": figures(alone),
        "beside": figures(joined),
        "owed_deliveries": sent.deliveries,
        "peak_memory_mb": processes.memory_mb(scene.server.pid)[1],
    }


def owed(setup: Setup, wanted: argparse.Namespace) -> dict[str, Any]:
    with stage(setup) as scene:
        slow = scene.another_sink()
        scene.api.endpoint(TENANT, slow.url(SLOW), [TENANT], None)
        events = (wanted.megabytes << 20) // 20_000
        flood = {"mode": "batch", "batch": 50, "connections": 4, "events": events, "payload_bytes": 20_000}
        return beside(scene, wanted.seconds, {**flood, "seconds": 60.0})


def crowd(setup: Setup, wanted: argparse.Namespace) -> dict[str, Any]:
    with stage(setup) as scene:
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


@contextmanager
def apart(url: str) -> Iterator[tuple[Server, Server, Sink, Sink]]:
    """An API process that runs, a worker that does not yet, and two receivers."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="surehook-bench-")))
        servers = []
        for role in ("api", "worker"):
            place = folder / role
            place.mkdir()
            command = (*product_command(), "--role", role)
            servers.append(Server(Launch(folder=place, command=command, database_url=url)))
            stack.callback(servers[-1].stop)
        servers[0].start()
        servers[0].wait_ready()
        yield servers[0], servers[1], stack.enter_context(receiver()), stack.enter_context(receiver())


def claims(url: str, wanted: argparse.Namespace) -> dict[str, Any]:
    with apart(url) as (api, worker, sink, slow):
        for tenant, where in ((TENANT, slow.url(SLOW)), (OTHER, sink.url("/ok/0"))):
            api.api.tenant(tenant)
            api.api.endpoint(tenant, where, [tenant], None)
        worker.start()
        worker.wait_ready()
        arrivals(api.port, sink, rate=RATE, seconds=1.0)
        alone = arrivals(api.port, sink, rate=RATE, seconds=wanted.seconds)
        worker.stop()
        flood = {"mode": "batch", "batch": 500, "connections": 4, "events": wanted.rows, "seconds": 120.0}
        rows = publish(api.port, TENANT, **flood).wait().deliveries
        worker.start()
        worker.wait_ready()
        at_start = arrivals(api.port, sink, mode="batch", batch=20, events=20, seconds=5.0)
        later = arrivals(api.port, sink, rate=RATE, seconds=wanted.seconds)
        return {
            "rows": rows,
            "alone": figures(alone),
            "twenty_at_start": figures(at_start),
            "beside": figures(later),
        }


def main() -> None:
    asks = argparse.ArgumentParser()
    asks.add_argument("--part", default="owed,crowd,claims")
    asks.add_argument("--seconds", type=float, default=8.0)
    asks.add_argument("--megabytes", type=int, default=64)
    asks.add_argument("--endpoints", type=int, default=5_000)
    asks.add_argument("--rows", type=int, default=50_000)
    asks.add_argument("--postgres", action="store_true")
    wanted = asks.parse_args()
    parts = wanted.part.split(",")
    with ExitStack() as stack:
        url: str | None = None
        if wanted.postgres or "claims" in parts:
            server = Postgres.new(durable=True)
            server.start()
            stack.callback(server.stop)
        for part in parts:
            if wanted.postgres or part == "claims":
                server.ask(f"create database {part}")
                url = server.url(part)
            setup = Setup(database_url=url)
            answer = (
                claims(url or "", wanted)
                if part == "claims"
                else {"owed": owed, "crowd": crowd}[part](setup, wanted)
            )
            print(json.dumps({part: answer}), flush=True)


if __name__ == "__main__":
    main()
