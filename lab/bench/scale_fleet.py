"""Nodes of the product on one database, and what a load through them costs: the instruments of `scale.py`.

A fleet is a database of a private PostgreSQL that writes through to the disk, and the processes that work on it. Each
measured run begins with a checkpoint, so that none pays for another's first touch of a page, and ends when the last
delivery has arrived and is recorded. What is read before and after:

- CPU of the processes by role, and of this PostgreSQL and this RabbitMQ alone (by their folders), with ended children;
- the log's position, and by `pg_walinspect` how much of it is whole pages, which depend on checkpoints;
- transactions that wrote; rows touched (from the statistics, which come late, so once for all runs of a fleet);
- AMQP messages, from the broker's global counters;
- what the machine did beside all this: CPU that none of our processes used.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from lab.bench import processes
from lab.bench.figures import Joined
from lab.bench.records import Plan
from lab.bench.server import KEY, Launch, Server, product_command
from lab.bench.stage import TENANT, BenchFailed, Load, Sink
from surehook.core.ids import floor
from tests.servers import Postgres, Rabbit
from tests.servers.sql import SqlError

TYPE = "document.signed"
MODES: dict[str, dict[str, Any]] = {
    "single": {"mode": "single", "connections": 64},
    "batch50": {"mode": "batch", "batch": 50, "connections": 8},
    # Far below any ceiling: its latency means something.
    "paced": {"mode": "single", "connections": 64, "rate": 300.0},
}
PAYLOAD = 600  # bytes of an event, as in the other benches
WARM_UP_S = 1.0
STILL_S = 30.0  # no arrival for so long, with something missing: the rest is not coming
LOOK_S = 0.02
STATISTICS_S = 11.0  # an idle backend of PostgreSQL tells what it counted within ten seconds
API, WORKER, BOTH = "api", "worker", "both"
# Of deliveries made since an instant: histories are never looked at by the product under load, and lose nothing. Looking for
# rows that are ready or held would walk, in a ledger on which a snapshot is held, over all rows that ever were.
_ENDED = """
select count(*) from attempt where delivery >= '\\x{floor}' and "end" is not null
"""
_ROWS = """
select tup_inserted, tup_updated, tup_deleted from pg_stat_database where datname = current_database()
"""
_COUNTER = re.compile(r"messages_(received|delivered)_total\s*=>\s*(\d+)")


class Shape(NamedTuple):
    """The processes of a fleet: what each is for, and how it is started. The first one is called."""

    says: str
    nodes: tuple[tuple[str, tuple[str, ...]], ...]
    broker: bool = False


_SPLIT = ((API, ("--role", "api")), (WORKER, ("--role", "worker")))
SHAPES = {
    "one": Shape("one process does all", ((BOTH, ()),)),
    "split": Shape("an API process and a worker; work is claimed", _SPLIT),
    "broker": Shape("an API process and a worker; RabbitMQ between them", _SPLIT, broker=True),
    "workers": Shape("an API process and two workers", (*_SPLIT, _SPLIT[1])),
    "processes": Shape("two processes that do all, on one port", ((BOTH, ("--processes", "2")),)),
}


class Reading(NamedTuple):
    """Readings of the meters at one moment. CPU in seconds."""

    cpu: dict[str, float]
    wal: int
    transactions: int
    messages: int
    machine: float  # busy seconds of all cores
    ours: float  # of these, this process and all it started
    at: float


class Fleet:
    """Processes of a shape on a database of their own. `start` and `stop` as often as need be."""

    def __init__(
        self, server: Postgres, name: str, shape: str, sink: Sink, *, broker: Rabbit | None, stack: ExitStack
    ) -> None:
        self.server, self.name, self.shape, self.sink = server, name, shape, sink
        self.broker = broker if SHAPES[shape].broker else None
        self.delivered = 0  # by all runs
        server.ask(f"create database {name}")
        self.ask("create extension if not exists pg_walinspect")
        settings = {}
        if self.broker is not None:
            settings["SUREHOOK_BROKER_URL"] = self.broker.url
        self.nodes: list[tuple[str, Server]] = []
        for role, words in SHAPES[shape].nodes:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="surehook-scale-")))
            launch = Launch(
                folder=folder,
                command=(*product_command(), *words),
                database_url=server.url(name),
                settings=settings,
            )
            self.nodes.append((role, Server(launch)))
        stack.callback(self.stop)
        self.start()
        self.api.tenant(TENANT)
        self.api.endpoint(TENANT, sink.url("/ok/0"), [TYPE])
        self._rows = self.rows()

    @property
    def api(self) -> Any:
        """The API of the first process."""
        return self.nodes[0][1].api

    def ask(self, query: str, *, seconds: float = 60.0) -> list[Any]:
        """Ask the fleet's database."""
        return self.server.ask(query, self.name, seconds=seconds)

    def start(self) -> None:
        """Start all processes, the first one first: it migrates."""
        for _, node in self.nodes:
            node.start()
            node.wait_ready()

    def stop(self) -> None:
        """Stop them."""
        for _, node in reversed(self.nodes):
            node.stop()

    # -- meters -----------------------------------------------------------------------------------------

    def rows(self) -> tuple[int, ...]:
        """Rows inserted, updated, deleted so far, as far as the statistics know."""
        return tuple(int(cell) for cell in self.ask(_ROWS)[0])

    def rows_per_delivery(self) -> dict[str, float]:
        """The same a delivery, over all runs of this fleet; as of `STATISTICS_S` after the last one."""
        each = zip(("inserted", "updated", "deleted"), self.rows(), self._rows, strict=True)
        return {name: round((now - then) / max(1, self.delivered), 2) for name, now, then in each}

    def read(self) -> Reading:
        """All meters."""
        assert self.server.postmaster is not None
        cpu = {"database": processes.cpu_seconds(self.server.postmaster)}
        for role, node in self.nodes:
            cpu[role] = cpu.get(role, 0.0) + processes.cpu_seconds(node.pid)
        messages = 0
        if self.broker is not None:
            cpu["broker"] = sum(own_seconds(pid) for pid in self.broker.pids())
            said = self.broker.ctl("eval", "rabbit_global_counters:overview().")
            messages = sum(int(count) for kind, count in _COUNTER.findall(said) if kind == "received")
        wal, transactions = self.ask(
            "select pg_current_wal_lsn() - '0/0', pg_snapshot_xmax(pg_current_snapshot())"
        )[0]
        return Reading(
            cpu, int(wal), int(transactions), messages, machine_seconds(), processes.cpu_seconds(os.getpid()),
            time.monotonic(),
        )  # fmt: skip

    def pages_of(self, since: int, until: int) -> int | None:
        """Bytes of whole pages in a stretch of the log; None where the server cannot tell."""
        try:
            (said,) = self.ask(
                "select sum(fpi_size)::bigint from "
                f"pg_get_wal_stats('0/0'::pg_lsn + {since}, '0/0'::pg_lsn + {until}, false)"
            )
        except (SqlError, OSError):
            return None
        return int(said[0] or 0)

    # -- a run ------------------------------------------------------------------------------------------

    def load(self, mode: str, seconds: float) -> Any:
        """Let the generator work; what it saw."""
        plan = {**MODES[mode], "payload_bytes": PAYLOAD, "seconds": seconds}
        self._loaded_at = time.time_ns() // 1_000_000
        load = Load(Plan(port=self.nodes[0][1].port, key=KEY, tenant=TENANT, types=(TYPE,), **plan))
        try:
            return load.wait()
        finally:
            load.abandon()

    def drain(self, expected: int) -> float:
        """Wait until all has arrived and is recorded; the instant. Gives up when nothing moves."""
        ended = _ENDED.format(floor=floor(self._loaded_at).hex())
        moved, before = time.monotonic(), -1
        while True:
            answered = self.sink.count().answered
            if answered >= expected and int(self.ask(ended)[0][0]) >= expected:
                return time.monotonic()
            if answered != before:
                moved, before = time.monotonic(), answered
            if time.monotonic() - moved > STILL_S:
                return time.monotonic()
            time.sleep(LOOK_S)

    def run(self, mode: str, seconds: float) -> dict[str, Any]:
        """One measured run."""
        self.server.ask("checkpoint", seconds=120.0)
        self.sink.reset()
        warm = self.load(mode, min(WARM_UP_S, seconds))
        self.drain(warm.deliveries)
        self.sink.reset()
        before, load = self.read(), os.getloadavg()[0]
        sent = self.load(mode, seconds)
        ended = self.drain(sent.deliveries)
        after = self.read()
        joined = Joined([sent], self.sink.report())
        if not joined.delivered:
            raise BenchFailed(f"{self.name}: nothing was delivered: {sent.statuses}")
        self.delivered += joined.delivered + warm.deliveries
        each = 1e6 / joined.delivered
        cpu = {role: round((after.cpu[role] - before.cpu[role]) * each, 1) for role in before.cpu}
        wal, pages = after.wal - before.wal, self.pages_of(before.wal, after.wal)
        arrival = joined.arrival_ms()
        span = after.at - before.at
        foreign = (after.machine - before.machine) - (after.ours - before.ours)
        return {
            "fleet": self.name,
            "shape": self.shape,
            "mode": mode,
            "delivered": joined.delivered,
            "delivered_per_s": round(joined.delivered / (ended - sent.started_ns / 1e9)),
            "product_cpu_us": round(sum(cpu.get(role, 0.0) for role in (API, WORKER, BOTH)), 1),
            "api_cpu_us": cpu.get(API),
            "worker_cpu_us": cpu.get(WORKER),
            "database_cpu_us": cpu["database"],
            "broker_cpu_us": cpu.get("broker"),
            "wal_bytes": round(wal / joined.delivered),
            "wal_page_bytes": None if pages is None else round(pages / joined.delivered),
            "transactions": round((after.transactions - before.transactions) / joined.delivered, 4),
            "broker_messages": round((after.messages - before.messages) / joined.delivered, 3)
            if self.broker is not None
            else None,
            "arrival_p50_ms": arrival["p50"],
            "arrival_p95_ms": arrival["p95"],
            "lost": joined.lost,
            "duplicated": joined.duplicated,
            "refused": sent.refused + sent.unanswered,
            "load": round(load, 1),
            "foreign_cores": round(max(0.0, foreign) / span, 2),
        }


def rest(fleets: list[Fleet]) -> dict[str, dict[str, float]]:
    """Let the statistics come in; what idle processes use meanwhile, in percent of a core."""
    before = [fleet.read() for fleet in fleets]
    time.sleep(STATISTICS_S)  # their own clock; there is no word to flush another session's
    idle: dict[str, dict[str, float]] = {}
    for fleet, then in zip(fleets, before, strict=True):
        now = fleet.read()
        span = now.at - then.at
        idle[fleet.name] = {
            role: round((now.cpu[role] - then.cpu[role]) / span * 100, 2) for role in then.cpu
        }
    return idle


def machine_seconds() -> float:
    """CPU seconds that all cores have been busy with anybody's work."""
    user, nice, system, _, _, irq, soft, *_ = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    )
    return (user + nice + system + irq + soft) / processes.TICKS


def own_seconds(pid: int) -> float:
    """CPU seconds of one process, without its children; 0 of one that is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    fields = text[text.rindex(")") + 2 :].split()
    return (int(fields[11]) + int(fields[12])) / processes.TICKS


@contextmanager
def held_snapshot(fleet: Fleet, seconds: float) -> Iterator[None]:
    """A transaction of somebody's, open in the fleet's database all the while: what it could see cannot be cleaned up."""
    import threading

    holder = f"select pg_sleep({seconds + 3600})"
    thread = threading.Thread(target=_hold, args=(fleet, holder, seconds + 7200), daemon=True)
    thread.start()
    pid = f"select pid from pg_stat_activity where query = '{holder}' and backend_xmin is not null"
    while not fleet.ask(pid):
        time.sleep(LOOK_S)
    try:
        yield
    finally:
        fleet.ask(f"select pg_terminate_backend(pid) from ({pid}) of")
        thread.join()


def _hold(fleet: Fleet, statement: str, seconds: float) -> None:
    try:
        fleet.ask(statement, seconds=seconds)
    except (SqlError, OSError):
        return  # it was ended, which is how it ends
