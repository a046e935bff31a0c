"""Durable accepts of the inbox beside a plain FastAPI handler that commits each request by itself, and processing.

    python -m lab.bench.inbox [--seconds 4] [--rounds 3] [--databases sqlite,postgresql] [--connections 256] [--record FILE]

Both receivers (`inbox_receivers`) run on one uvicorn process with a FastAPI application, in which the plain handler is a route
and in front of which the inbox stands (`inbox.before(app)`); both have the same engine settings, verify the same
signed messages of about 1 KB, store them under a unique key in the same durable database (fsync at every commit), and
answer after the commit. The load comes from this process over kept-alive connections, one request at a time on each, signed
before the clock starts. In each round both take their turn on a fresh database, the first of one round is the second of the
next. "processed" is what workers (`start(workers=…)`) in this process then do with what the inbox accepted: a workflow in strict
order, and one handler that writes a row.

Figures are medians of rounds, a ratio is that of one round. CPU is user and system time of the process named, for one
request; the load generator's own shares the machine with them and is told, so that one sees what is left for the others.
"""
# ruff: noqa: T201 (a program that prints)

from __future__ import annotations

import argparse
import asyncio
import contextlib
import inspect
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import uvloop

from lab import ROOT
from lab.bench.inbox_receivers import inbox_on, prepare
from surehook.core import effects
from surehook.inbox import Inbox
from surehook.inbox.worker import Worker
from surehook.verify import sign
from tests import servers
from tests.inbox.house import SECRET
from tests.inbox.programs.table import STORY

FIRST_PORT, LAST_PORT = 23_000, 23_499
# Messages signed for a second of load; the load ends with them.
MOST_A_SECOND = {"plain": 4_000, "inbox": 12_000}
WARM_S = 0.5  # before the clock starts: connections, pools, memos
START_S = 20.0
PROCESS_S = 6.0  # processing of one round
# SQLite has one writer. A worker on PostgreSQL waits for an answer three times an event; meanwhile others go on.
WORKERS = {"sqlite": 1, "postgresql": 8}
PADDING = "x" * 800  # a body of about 1 KB
BAR_ACCEPTS, BAR_PROCESSED = 5.0, 0.4
TICKS = os.sysconf("SC_CLK_TCK")

Figures = dict[str, float]


def requests(count: int, prefix: str) -> list[bytes]:
    """Signed requests, ready to be sent: documents of four events each."""
    made = []
    for n in range(count):
        document, at = divmod(n, len(STORY))
        data = {"type": STORY[at], "document": f"{prefix}-{document}", "n": at + 1, "padding": PADDING}
        body = json.dumps(data).encode()
        signed = sign(SECRET, f"{prefix}_{n}", body)
        headers = "".join(f"{name}: {value}\r\n" for name, value in signed.items())
        head = f"POST /hooks/partner HTTP/1.1\r\nhost: bench\r\n{headers}content-length: {len(body)}\r\n\r\n"
        made.append(head.encode() + body)
    return made


class Caller(asyncio.Protocol):
    """One connection that sends the next request when the last was answered."""

    def __init__(self, line: Iterator[bytes], tally: dict[str, int]) -> None:
        self._line, self._tally, self._said = line, tally, b""
        self.over = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self._wire = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        self._said += data
        if b"\r\n\r\n" not in self._said:
            return
        self._tally["accepted" if self._said.startswith(b"HTTP/1.1 200") else "refused"] += 1
        self._said = b""
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.over.done():
            self.over.set_result(None)

    def _next(self) -> None:
        request = next(self._line, None)
        if request is None:
            self._wire.close()
        else:
            self._wire.write(request)


async def load(
    port: int, made: list[bytes], seconds: float, connections: int, cpu: Callable[[], Figures]
) -> Figures:
    """Accepted per second, and CPU in µs for each, after a moment of warming up."""
    tally = {"accepted": 0, "refused": 0}
    end = time.monotonic() + WARM_S + seconds

    def line() -> Iterator[bytes]:
        for one in made:
            if time.monotonic() >= end:
                return
            yield one

    shared, loop = line(), asyncio.get_running_loop()
    pairs = [
        await loop.create_connection(lambda: Caller(shared, tally), "127.0.0.1", port)
        for _ in range(connections)
    ]
    await asyncio.sleep(WARM_S)
    began, before, used = time.monotonic(), tally["accepted"], cpu()
    await asyncio.gather(*(caller.over for _, caller in pairs))
    took, count = time.monotonic() - began, tally["accepted"] - before
    if tally["refused"]:
        raise SystemExit(f"{tally['refused']} requests were refused")
    return {"per_s": count / took} | {
        f"{who}_us": (spent - used[who]) / count * 1e6 for who, spent in cpu().items()
    }


def seconds_of(pid: int, *, children: bool = False) -> float:
    """User and system time of a process, and of its children that have ended."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        return sum(map(int, fields[11 : 15 if children else 13])) / TICKS
    return 0.0


class Ground:
    """A kind of database: fresh ones by URL, and the CPU time of its server."""

    def __init__(self, name: str) -> None:
        self._server = None if name == "sqlite" else servers.Postgres.new(durable=True)

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        if self._server is None:
            with tempfile.TemporaryDirectory(dir=ROOT / "lab") as folder:
                yield f"sqlite:///{folder}/inbox.db"
        else:
            with self._server.database() as url:
                yield url

    def cpu(self) -> Figures:
        if self._server is None:
            return {}
        first = self._server.postmaster
        return {"database": sum(seconds_of(pid, children=pid == first) for pid in self._server.pids())}

    def close(self) -> None:
        if self._server is not None:
            self._server.close()


@contextlib.contextmanager
def receiver(kind: str, url: str, port: int) -> Iterator[int]:
    """A receiver that listens; its process id."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lab.bench.inbox_receivers", kind, url, str(port)], cwd=ROOT
    )
    try:
        end = time.monotonic() + START_S
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if time.monotonic() > end or process.poll() is not None:
                raise SystemExit("the receiver did not start")
            time.sleep(0.05)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def accepted(kind: str, ground: Ground, url: str, given: argparse.Namespace) -> Figures:
    port = FIRST_PORT + os.getpid() % (LAST_PORT - FIRST_PORT)
    made = requests(int((given.seconds + WARM_S) * MOST_A_SECOND[kind]), kind)
    with receiver(kind, url, port) as pid:

        def cpu() -> Figures:
            return {"receiver": seconds_of(pid), "load": time.process_time(), **ground.cpu()}

        return uvloop.run(load(port, made, given.seconds, given.connections, cpu))


async def processed(name: str, url: str, ground: Ground) -> Figures:
    """Events per second that the workers of one process make of what was accepted."""
    inbox = inbox_on(url)
    workers = [inbox.worker() for _ in range(WORKERS[name])]
    began, used, database = time.monotonic(), time.process_time(), ground.cpu()
    await asyncio.gather(*(turns(worker, isinstance(inbox, Inbox), began + PROCESS_S) for worker in workers))
    took, spent = time.monotonic() - began, time.process_time() - used
    counts = await waited(inbox.counts())
    await waited(inbox.close())
    done = counts["partner"].get("finalized", 0)
    return {"per_s": done / took, "worker_us": spent / done * 1e6} | {
        f"{who}_us": (spent - database[who]) / done * 1e6 for who, spent in ground.cpu().items()
    }


async def turns(worker: Worker, blocks: bool, end: float) -> None:
    """Work until there is nothing to do, or time is over."""
    while time.monotonic() < end:
        turn = worker.turn()
        if (effects.run(turn) if blocks else await effects.run_async(turn)) is not None:
            return


async def waited(value: Any) -> Any:
    """Result of a call of an inbox of either kind."""
    return await value if inspect.isawaitable(value) else value


def round_of(name: str, ground: Ground, number: int, given: argparse.Namespace) -> dict[str, Figures]:
    found: dict[str, Figures] = {}
    with ground.database() as url:
        prepare(url)
        for kind in ("plain", "inbox") if number % 2 == 0 else ("inbox", "plain"):
            found[kind] = accepted(kind, ground, url, given)
        found["processed"] = uvloop.run(processed(name, url, ground))
    accepts = found["inbox"]["per_s"]
    found["ratios"] = {
        "accepts": accepts / found["plain"]["per_s"],
        "processed": found["processed"]["per_s"] / accepts,
    }
    return found


def measure(name: str, given: argparse.Namespace) -> dict[str, Any]:
    ground = Ground(name)
    try:
        rounds = [round_of(name, ground, number, given) for number in range(given.rounds)]
    finally:
        ground.close()
    medians = {
        part: {figure: median(one[part][figure] for one in rounds) for figure in rounds[0][part]}
        for part in rounds[0]
    }
    return {"database": name, "medians": medians, "rounds": rounds}


def show(found: dict[str, Any]) -> None:
    print(f"\n{found['database']:12} {'per second':>10}   CPU in µs for each")
    medians = found["medians"]
    for part in ("plain", "inbox", "processed"):
        cpu = ", ".join(
            f"{name[:-3]} {value:.0f}" for name, value in medians[part].items() if name.endswith("_us")
        )
        print(f"  {part:10} {medians[part]['per_s']:10,.0f}   {cpu}")
    for name, bar, words in (
        ("accepts", BAR_ACCEPTS, "accepts of the plain handler"),
        ("processed", BAR_PROCESSED, "accepts of the inbox are processed"),
    ):
        value, each = medians["ratios"][name], [f"{one['ratios'][name]:.2f}" for one in found["rounds"]]
        verdict = "as wanted" if value >= bar else "BELOW"
        print(f"  {value:.2f} × the {words} (rounds {', '.join(each)}; bar {bar}: {verdict})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4.0, help="of load for each receiver in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=256)
    parser.add_argument("--databases", default="sqlite,postgresql")
    parser.add_argument("--record", type=Path, help="a file for all figures, as JSON")
    given = parser.parse_args()
    document: dict[str, Any] = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_average_before": os.getloadavg(),
        "seconds": given.seconds,
        "connections": given.connections,
        "databases": [],
    }
    print(f"{os.cpu_count()} cores, load average before: {os.getloadavg()[0]:.1f}")
    for name in given.databases.split(","):
        found = measure(name, given)
        document["databases"].append(found)
        show(found)
    document["load_average_after"] = os.getloadavg()
    if given.record:
        given.record.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
