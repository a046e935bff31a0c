"""Accepts beside a configuration that changes: `python -m lab.bench.configuration [--ledger sqlite|pg] [--endpoints N]`.

A ledger is filled with endpoints of a thousand tenants by itself. Then servers start on it, and what that takes of time
and memory is taken down: one on SQLite, two API nodes on PostgreSQL. Publishers on kept connections post single events
that match no endpoint, so that accepting is all there is. Windows without changes (`alone`) and with changes of filters
at the first node (`beside`) take turns, in pairs whose order changes, so that a machine that becomes slower or faster
meanwhile is no difference between them.

    full     publishers go as fast as they are answered: speed and p99, compared pair by pair
    paced    so many events a second, which leaves the processors room: how late timers of the event loop fire, from the
             servers' own metric. At full speed a timer waits for the processors, with changes and without.

What must hold is printed with its bound. Ratios hold across machines, absolute figures do not; where other work shares the
processors, only CPU time means something. The bench's own CPU is printed too: near 1 it is what is measured.
"""
# ruff: noqa: T201 (a program that prints)

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from lab.bench.configuration_fill import TENANTS, fill_postgres, fill_sqlite
from lab.bench.configuration_load import cpu_s, resident, window
from lab.bench.server import Launch, Server
from tests.servers import Postgres

ALONE, BESIDE = "alone", "beside"


def started(launch: Launch) -> tuple[Server, dict[str, float]]:
    server = Server(launch)
    server.start()
    seconds = server.wait_ready()
    return server, {
        "start_s": seconds,
        "start_cpu_s": cpu_s(server.pid),
        "resident_mb": resident(server.pid) / 1e6,
    }


async def windows(servers: list[Server], given: argparse.Namespace, *, rate: int) -> dict[str, list[Any]]:
    """Pairs of windows: alone and beside, beside and alone, and so on."""
    found: dict[str, list[Any]] = {ALONE: [], BESIDE: []}
    for number in range(given.rounds):
        for name in (ALONE, BESIDE) if number % 2 == 0 else (BESIDE, ALONE):
            changes = given.changes if name == BESIDE else 0
            found[name].append(
                await window(servers, given.seconds, rate=rate, changes=changes, endpoints=given.endpoints)
            )
    return found


async def run(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    count = given.endpoints
    postgres = Postgres.new() if given.ledger == "pg" else None
    url = postgres.url() if postgres is not None else f"sqlite:///{folder / 'surehook.db'}"
    settings = {"SUREHOOK_ROLE": "api"} if postgres is not None else {}
    launch = Launch(folder=folder, database_url=url, settings=settings)
    empty, bare = await asyncio.to_thread(started, launch)
    empty.stop()
    await (
        fill_postgres(url, count) if postgres is not None else fill_sqlite(str(folder / "surehook.db"), count)
    )
    servers: list[Server] = []
    starts = []
    try:
        for _ in range(2 if postgres is not None else 1):
            server, start = await asyncio.to_thread(started, launch)
            servers.append(server)
            starts.append(start)
        # Warm: the first change of a process reads statements and fills caches.
        await window(servers, given.seconds, rate=0, changes=given.changes, endpoints=count)
        full = await windows(servers, given, rate=0)
        paced = await windows(servers, given, rate=given.rate)
    finally:
        for server in servers:
            server.stop()
        if postgres is not None:
            postgres.close()
    return {
        "ledger": given.ledger, "nodes": len(servers), "endpoints": count, "tenants": TENANTS,
        "asked_changes_per_s": given.changes, "start": starts, "start_empty": bare, "full": full, "paced": paced,
        "holds": holds(full, paced, starts, bare, given),
    }  # fmt: skip


def holds(
    full: dict[str, list[Any]],
    paced: dict[str, list[Any]],
    starts: list[Any],
    bare: Any,
    given: argparse.Namespace,
) -> list[dict[str, Any]]:
    """Promises: each figure, its bound, and whether it is kept."""
    speeds = _pairs(full, "accepts_per_s")
    ratio = statistics.median(beside / alone for alone, beside in speeds)
    worse = statistics.median(beside - alone for alone, beside in _pairs(full, "p99_ms"))
    reached = statistics.median(one["changes_per_s"] for one in full[BESIDE])
    latest = max(one["late_below_ms"] for one in paced[BESIDE])
    grown = (starts[0]["resident_mb"] - bare["resident_mb"]) * 1e6 / given.endpoints
    figures = [
        ("accepts keep of their speed", ratio, ">=", 0.9),
        ("changes a second, at full speed", reached, ">=", given.changes * 0.98),
        ("p99 worse by, ms", worse, "<=", 50.0),
        ("loop late, paced, below ms", latest, "<=", 20.0),
        ("start, s", max(one["start_s"] for one in starts), "<=", 5.0),
        ("bytes for each endpoint", grown, "<=", 2_048.0),
    ]
    return [
        {"what": what, "figure": figure, "bound": f"{sign} {bound:g}", "kept": (figure >= bound) is (sign == ">=")
         or figure == bound}
        for what, figure, sign, bound in figures
    ]  # fmt: skip


def _pairs(found: dict[str, list[Any]], name: str) -> list[tuple[float, float]]:
    return [(alone[name], beside[name]) for alone, beside in zip(found[ALONE], found[BESIDE], strict=True)]


COLUMNS = {
    "accepts_per_s": ("accepts/s", 0), "p50_ms": ("p50 ms", 1), "p99_ms": ("p99 ms", 1), "worst_ms": ("worst ms", 1),
    "changes_per_s": ("changes/s", 1), "cpu_us_per_accept": ("CPU us", 0), "cpu_first_node": ("first CPU", 2),
    "cpu_other_node": ("other CPU", 2), "cpu_bench": ("bench CPU", 2), "late_below_ms": ("late ms <", 0),
    "late_over_20_ms": ("late >20", 0),
}  # fmt: skip


def show(figures: dict[str, Any]) -> None:
    print(f"\n{'':16}" + "".join([f"{title:>11}" for title, _ in COLUMNS.values()]))
    for kind in ("full", "paced"):
        for name in (ALONE, BESIDE):
            found = figures[kind][name]
            middle = {key: statistics.median(one[key] for one in found) for key in COLUMNS}
            middle["late_below_ms"] = max(one["late_below_ms"] for one in found)
            middle["late_over_20_ms"] = sum(one["late_over_20_ms"] for one in found)
            cells = [f"{middle[key]:11.{places}f}" for key, (_, places) in COLUMNS.items()]
            print(f"{kind + ', ' + name:16}" + "".join(cells))
    full = figures["full"]
    ratios = ", ".join([f"{beside / alone:.2f}" for alone, beside in _pairs(full, "accepts_per_s")])
    alone_us, beside_us = (
        statistics.median(one["cpu_us_per_accept"] for one in full[name]) for name in (ALONE, BESIDE)
    )
    print(
        f"\nspeed of each pair: {ratios}; CPU of an accept with all around it {beside_us / alone_us:.2f} times as much"
    )
    for start in (figures["start_empty"], *figures["start"]):
        which = "empty" if start is figures["start_empty"] else f"{figures['endpoints']} endpoints"
        print(f"start, {which}: {start['start_s']:.1f} s, CPU {start['start_cpu_s']:.1f} s")
    print(f"\n{'what must hold':36}{'figure':>10}  bound")
    for one in figures["holds"]:
        print(f"{one['what']:36}{one['figure']:10.2f}  {one['bound']:8} {'' if one['kept'] else 'NOT KEPT'}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ledger", choices=("sqlite", "pg"), default="sqlite")
    parser.add_argument("--endpoints", type=int, default=100_000)
    parser.add_argument("--changes", type=int, default=50, help="a second")
    parser.add_argument("--seconds", type=float, default=5.0, help="of a window")
    parser.add_argument("--rounds", type=int, default=6, help="pairs of windows, of each kind")
    parser.add_argument(
        "--rate", type=int, default=100, help="events a second at each node, in paced windows"
    )
    parser.add_argument("--record", type=Path, help="write the figures to this file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="surehook-bench-") as folder:
        figures = asyncio.run(run(given, Path(folder)))
    if given.record is not None:
        given.record.write_text(json.dumps(figures, indent=1) + "\n")
    show(figures)


if __name__ == "__main__":
    main()
