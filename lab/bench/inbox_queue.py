"""Accepts of the inbox with a queue in front of its table, beside the table alone, and how fast a mover takes them over.

    python -m lab.bench.inbox_queue [--seconds 4] [--connections 256] [--record FILE]

One uvicorn process with an `AsyncInbox` on PostgreSQL (fsync at every commit), without workers; the load is that of
`lab.bench.inbox`. Redis has an append-only file with `appendfsync always`, RabbitMQ is one node with a quorum queue. "moved" is
what `inbox.move()` in this process then makes of what waits. One run each: figures of a machine with other work drift by a third.
"""
# ruff: noqa: T201 (a program that prints)

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import uvicorn
import uvloop
from starlette.applications import Starlette

from lab import ROOT
from lab.bench.inbox import FIRST_PORT, Figures, Ground, load, requests, seconds_of
from surehook.inbox import AsyncInbox, Inbox
from tests import servers
from tests.inbox.house import partner
from tests.servers import ports

MOST_A_SECOND = 12_000  # messages signed for a second of load


def inbox_at(url: str, queue: str) -> AsyncInbox:
    return AsyncInbox(url, [partner(on_conflict="accept")], queue=queue or None)


class Broker:
    """One of the brokers, or none, and the CPU time of its server."""

    def __init__(self, name: str) -> None:
        self.url = ""
        self.pids: Callable[[], list[int]] = list
        self.close: Callable[[], None] = lambda: None
        if name == "redis":
            redis = servers.Redis.new(keeping=True, always=True)
            self.url, self.pids, self.close = redis.url, redis.pids, redis.close
        elif name == "rabbitmq":
            rabbits = servers.Rabbits.new()
            self.url, self.pids, self.close = rabbits.urls[0], rabbits.nodes[0].pids, rabbits.close

    def cpu(self) -> float:
        return sum(seconds_of(pid, children=True) for pid in self.pids())


@contextlib.contextmanager
def receiver(url: str, queue: str, port: int) -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, "-m", "lab.bench.inbox_queue", "--serve", url, queue, str(port)], cwd=ROOT
    )
    try:
        end = time.monotonic() + 20
        while not ports.open_at(port):
            if time.monotonic() > end or process.poll() is not None:
                raise SystemExit("the receiver did not start")
            time.sleep(0.05)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def measure(name: str, given: argparse.Namespace) -> dict[str, Figures]:
    ground, broker = Ground("postgresql"), Broker(name)
    port = FIRST_PORT + os.getpid() % 400
    try:
        with ground.database() as url:
            tables = Inbox(url)
            tables.create_tables()
            tables.close()
            made = requests(int((given.seconds + 1) * MOST_A_SECOND), name)
            with receiver(url, broker.url, port) as pid:

                def cpu() -> Figures:
                    return {"receiver": seconds_of(pid), "broker": broker.cpu(), **ground.cpu()}

                found = {"accepted": uvloop.run(load(port, made, given.seconds, given.connections, cpu))}
            if broker.url:
                found["moved"] = uvloop.run(moved(url, broker, ground))
            return found
    finally:
        ground.close()
        broker.close()


async def moved(url: str, broker: Broker, ground: Ground) -> Figures:
    inbox = inbox_at(url, broker.url)
    began, used, database, brokers = time.monotonic(), time.process_time(), ground.cpu(), broker.cpu()
    count = await inbox.move()
    took, spent = time.monotonic() - began, time.process_time() - used
    await inbox.close()
    return {
        "per_s": count / took,
        "mover_us": spent / count * 1e6,
        "broker_us": (broker.cpu() - brokers) / count * 1e6,
        "database_us": (ground.cpu()["database"] - database["database"]) / count * 1e6,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--connections", type=int, default=256)
    parser.add_argument("--record", type=Path, help="a file for all figures, as JSON")
    parser.add_argument("--serve", nargs=3, metavar=("URL", "QUEUE", "PORT"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        url, queue, port = given.serve
        uvicorn.run(
            inbox_at(url, queue).before(Starlette(), "/hooks"),
            host="127.0.0.1",
            port=int(port),
            log_level="warning",
            access_log=False,
        )
        return
    document: dict[str, Any] = {"cores": os.cpu_count(), "load_average_before": os.getloadavg()}
    for name in ("table", "redis", "rabbitmq"):
        document[name] = measure(name, given)
        for part, figures in document[name].items():
            cpu = ", ".join(
                f"{who[:-3]} {value:.0f}" for who, value in figures.items() if who.endswith("_us")
            )
            print(
                f"{name:10} {part:10} {figures['per_s']:8,.0f} a second   CPU in µs for each: {cpu}",
                flush=True,
            )
    if given.record:
        given.record.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
