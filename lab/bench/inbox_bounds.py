"""Harm that one handler of an inbox can do to others, with real processes and databases: each figure beside its bound.

    python -m lab.bench.inbox_bounds [--only hangs,frozen,rows,sqlite] [--kinds sync,async] [--record FILE]

hangs   five handlers that never end on two processes of two workers (PostgreSQL, timeout 5 s): how long a quick event waits for
        its effect, at most; then SIGTERM while they hang: until both processes are gone
frozen  a process stands still (SIGSTOP) in the middle of a handler that has written its row (lease 10 s): until another one
        has done that event
rows    64 events whose handlers write a row and then take 0.5 s, two workers: how long another transaction waits for
        the row of one of them, at most
sqlite  a handler that takes 25 s before it writes: p50, p99 and most of accepts meanwhile, with the worker in the same process
        and in another one
"""
# ruff: noqa: T201 (a program that prints)

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import text

from lab import ROOT
from lab.bench.inbox_bounds_app import SECRET, blocking, inbox_of
from surehook.inbox.receive import IncomingRequest
from surehook.verify import sign
from tests import servers

ROWS = 100
PATIENCE_S = 120.0
HANG_TIMEOUT_S, FROZEN_LEASE_S, SLOW_S, LONG_S = 5.0, 10.0, 0.5, 25.0


class Ground:
    """A database, the inbox's tables, rows that handlers write, and processes that work on it."""

    def __init__(self, url: str, kind: str, **rules: Any) -> None:
        self.url, self.kind = url, kind
        for name in ("TIMEOUT_S", "LEASE_MS"):
            os.environ.pop(name, None)
        os.environ.update({name: str(value) for name, value in rules.items()})
        self.environment = {**os.environ, "DATABASE": url, "KIND": kind}
        self.inbox: Any = inbox_of("sync", url)
        self.inbox.create_tables()
        self.count = 0
        self.sql("create table bench_rows (id integer primary key, at double precision)")
        for n in range(ROWS):
            self.sql("insert into bench_rows values (:id, 0)", id=n)

    def sql(self, statement: str, **values: Any) -> list[Any]:
        with self.inbox.store.engine.begin() as connection:
            found = connection.execute(text(statement), values)
            return [tuple(row) for row in found] if found.returns_rows else []

    def put(self, type: str, row: int, seconds: float = 0.0) -> float:
        """Accept one event; how long that took, in seconds."""
        self.count += 1
        body = json.dumps({"type": type, "row": row, "s": seconds}).encode()
        headers = list(sign(SECRET, f"evt_{self.count}", body).items())
        call = IncomingRequest(
            method="POST",
            source="partner",
            query="",
            url="http://bench/partner",
            headers=headers,
            peer="127.0.0.1",
            body=body,
        )
        began = time.monotonic()
        reply = self.inbox.receive(call)
        took = time.monotonic() - began
        if reply.status != 200:
            print(f"refused: {reply.status} {reply.body!r}", file=sys.stderr)
        return took

    @contextlib.contextmanager
    def working(self, processes: int, workers: int) -> Iterator[list[subprocess.Popen[bytes]]]:
        named = ["lab.bench.inbox_bounds_app:inbox", "--workers", str(workers)]
        command = [sys.executable, "-m", "surehook", "inbox", "work", *named]
        made = [
            subprocess.Popen(command, env=self.environment, cwd=ROOT, stderr=subprocess.PIPE)
            for _ in range(processes)
        ]
        try:
            for one in made:
                assert one.stderr is not None
                if b"until SIGTERM" not in (said := one.stderr.readline()):
                    raise SystemExit((said + one.stderr.read()).decode())
                threading.Thread(
                    target=lambda one=one: sys.stderr.write(one.stderr.read().decode()), daemon=True
                ).start()
            yield made
        finally:
            for one in made:
                one.kill()
                one.wait()

    def effect(self, row: int, since: float) -> float:
        """Instant at which the row was written after this moment."""
        ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends:
            ((at,),) = self.sql("select at from bench_rows where id = :id", id=row)
            if at >= since:
                return float(at)
            time.sleep(0.02)
        return float("inf")


def hangs(url: str, kind: str) -> dict[str, float]:
    ground = Ground(url, kind, TIMEOUT_S=HANG_TIMEOUT_S, LEASE_MS=12_000)
    with ground.working(2, 2) as processes:
        for n in range(5):
            ground.put("hangs", n)
        waits = []
        for n in range(60):
            began = time.time()
            ground.put("quick", 10 + n)
            time.sleep(0.25)
            waits.append((10 + n, began))
        took = [ground.effect(row, began) - began for row, began in waits]
        ground.put("hangs", 90)
        ground.put("hangs", 91)
        time.sleep(1.5)
        began = time.monotonic()
        for one in processes:
            one.send_signal(signal.SIGTERM)
        for one in processes:
            one.wait(60)
        return {
            "quick_event_waits_most_s": max(took), "bound_s": 2 * HANG_TIMEOUT_S,
            "sigterm_s": time.monotonic() - began, "sigterm_bound_s": 15.0,
        }  # fmt: skip


def frozen(url: str, kind: str) -> dict[str, float]:
    ground = Ground(url, kind, TIMEOUT_S=HANG_TIMEOUT_S, LEASE_MS=round(FROZEN_LEASE_S * 1000))
    with ground.working(1, 1) as (first,):
        ground.put("quick", 1)
        ground.effect(1, 1.0)
        ground.put("after", 2, 3.0)
        began = time.time()
        while not ground.sql("select 1 from surehook_inbox_runs where lease is not null"):
            time.sleep(0.02)
        time.sleep(1.0)  # in the middle of its handler, with the row locked
        first.send_signal(signal.SIGSTOP)
        with ground.working(1, 1):
            done = ground.effect(2, began + 1.0)
        return {"taken_up_after_s": done - began, "bound_s": FROZEN_LEASE_S + 5.0}


def rows(url: str, kind: str) -> dict[str, float]:
    ground = Ground(url, kind)
    for n in range(64):
        ground.put("after", n % 8, SLOW_S)
    waits = []
    with ground.working(1, 2):
        ends = time.monotonic() + 20.0
        while time.monotonic() < ends:
            began = time.monotonic()
            ground.sql("update bench_rows set at = at where id = 3")
            waits.append(time.monotonic() - began)
            time.sleep(0.05)
    return {"another_transaction_waits_most_s": max(waits), "bound_s": 1.0}


def sqlite(url: str, kind: str, *, inside: bool) -> dict[str, float]:
    ground = Ground(url, kind, TIMEOUT_S=LONG_S + 5)
    ground.put("before", 1, LONG_S)
    with contextlib.ExitStack() as stack:
        if inside:
            ground.inbox.on("partner")(blocking)
            ground.inbox.start(1)
            stack.callback(ground.inbox.stop)
        else:
            stack.enter_context(ground.working(1, 1))
        took = []
        ends = time.monotonic() + LONG_S + 3
        while time.monotonic() < ends:
            took.append(ground.put("quick", 5))
            time.sleep(0.03)
        took.sort()
    return {
        "accepts": len(took), "p50_ms": took[len(took) // 2] * 1000, "p99_ms": took[len(took) * 99 // 100] * 1000,
        "most_ms": took[-1] * 1000, "p99_bound_ms": 100.0,
    }  # fmt: skip


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    words.add_argument("--only", default="hangs,frozen,rows,sqlite")
    words.add_argument("--kinds", default="sync,async")
    words.add_argument("--record", type=Path)
    given = words.parse_args()
    found: dict[str, dict[str, float]] = {}

    def say(name: str, figures: dict[str, float]) -> None:
        found[name] = {key: round(value, 3) for key, value in figures.items()}
        print(f"{name:<24}" + "  ".join(f"{key}={value:g}" for key, value in found[name].items()), flush=True)

    on_postgres = {"hangs": hangs, "frozen": frozen, "rows": rows}
    for kind in given.kinds.split(","):
        for name in given.only.split(","):
            if name in on_postgres:
                with servers.postgres().database() as url:
                    say(f"{name} {kind}", on_postgres[name](url, kind))
                continue
            for inside in (True, False) if kind == "sync" else (False,):
                with tempfile.TemporaryDirectory() as folder:
                    place = "in the process" if inside else "in another"
                    say(f"sqlite {kind} {place}", sqlite(f"sqlite:///{folder}/inbox.db", kind, inside=inside))
    if given.record:
        given.record.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
