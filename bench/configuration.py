"""Accepts beside a configuration that changes: `python bench/configuration.py [--ledger sqlite|pg] [--endpoints N]`.

A ledger is filled with endpoints of a thousand tenants by itself. Then servers start on it, and what that takes of time
and memory is taken down: one on SQLite, two API nodes on PostgreSQL. Publishers on kept connections post single events
that match no endpoint, so that accepting is all there is. Rounds without changes and rounds with changes of endpoints'
filters, so many a second on the first node, take turns; p99 and the speed of each are compared within the run. How late
timers of the event loop fire is read from the servers' own metrics: the bound under which all did, and the share of those
that were more than 20 ms late. Who shares the cores makes both worse; what changes add is the difference.

Ratios hold across machines, absolute figures do not. Where other work shares the cores, look at CPU time.
"""
# ruff: noqa: T201 (a program that prints)

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.servers import Postgres

from surehook.benches.server import KEY, Launch, Server
from surehook.core import ids
from surehook.ledgers.postgres.ledger import PostgresLedger
from surehook.ledgers.sqlite import SqliteLedger

TENANTS = 1_000
CONNECTIONS = 16  # of publishers, for each node
PART = 5_000  # rows of one filling statement
STALL_S = 0.02  # a timer this late was held up by something that took too long at once
NOW = 1_767_225_600_000
BUCKET = re.compile(r'^surehook_loop_lateness_seconds_bucket\{le="([^"]+)"\} (\S+)$', re.MULTILINE)


def endpoint_id(number: int) -> bytes:
    return ids.uuid7(NOW, number.to_bytes(10, "big"))


def rows(count: int) -> Any:
    """Endpoints and their secrets, as columns of texts and bytes."""
    for number in range(count):
        name = f"h{number % 500}.example.com"
        yield (
            endpoint_id(number), f"t{number % TENANTS}", f"https://{name}/hooks/{number}", '["document.*"]', "active", 0,
            "none", "{}", "An endpoint of a customer", NOW, NOW,
        )  # fmt: skip


COLUMNS = 'id, tenant, url, event_types, status, failure_count, "order", headers, description, created_at, updated_at'


async def fill_sqlite(path: str, count: int) -> None:
    ledger = SqliteLedger(path)
    await ledger.open(now=NOW)

    def work(session: Any) -> None:
        connection = session.connection
        with session.writing():
            connection.executemany(
                "insert into tenant values (?, ?, 0, ?)", ((f"t{n}", "T", NOW) for n in range(TENANTS))
            )
            connection.executemany(
                f"insert into endpoint ({COLUMNS}) values (?,?,?,?,?,?,?,?,?,?,?)", rows(count)
            )
            secrets = ((endpoint_id(n), endpoint_id(n), os.urandom(32), NOW) for n in range(count))
            connection.executemany(
                "insert into secret (endpoint, id, kind, material, created_at) values (?, ?, 'v1', ?, ?)",
                secrets,
            )

    await ledger._write(work)
    await ledger.close()


async def fill_postgres(url: str, count: int) -> None:
    ledger = PostgresLedger(url)
    await ledger.open(now=NOW)
    async with ledger._working.lend() as session:
        connection = await session.connected()
        await connection.copy_records_to_table(
            "tenant", records=[(f"t{n}", "T", False, NOW) for n in range(TENANTS)],
            columns=["id", "name", "strict", "created_at"],
        )  # fmt: skip
        columns = [name.strip(' "') for name in COLUMNS.split(",")]
        await connection.copy_records_to_table("endpoint", records=rows(count), columns=columns)
        await connection.copy_records_to_table(
            "secret", records=((endpoint_id(n), endpoint_id(n), "v1", os.urandom(32), NOW) for n in range(count)),
            columns=["endpoint", "id", "kind", "material", "created_at"],
        )  # fmt: skip
        await connection.execute("analyze endpoint; analyze secret; analyze tenant")
    await ledger.close()


# -- load -------------------------------------------------------------------------------------------------


async def ask(connection: Any, method: str, path: str, body: Any) -> int:
    """One call on a kept connection; its status."""
    reader, writer = connection
    data = json.dumps(body).encode()
    writer.write(
        f"{method} {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(data)}\r\n\r\n".encode()
        + data
    )
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    if length is not None:
        await reader.readexactly(int(length[1]))
    return int(head[9:12])


async def publish(port: int, until: float, took: list[float], bad: list[int]) -> None:
    connection = await asyncio.open_connection("127.0.0.1", port)
    number = 0
    while time.perf_counter() < until:
        number += 1
        began = time.perf_counter()
        event = {"tenant": f"t{number % TENANTS}", "type": "nobody.wants", "data": {"n": number}}
        status = await ask(connection, "POST", "/v1/events", event)
        took.append(time.perf_counter() - began)
        if status != 202:
            bad.append(status)
    connection[1].close()


async def change(port: int, until: float, each_s: float, endpoints: int, done: list[int]) -> None:
    """Change the filter of one endpoint after another, at a pace."""
    connection = await asyncio.open_connection("127.0.0.1", port)
    began, number = time.perf_counter(), 0
    while time.perf_counter() < until:
        number += 1
        id = ids.text(ids.ENDPOINT, endpoint_id(number * 7919 % endpoints))
        done.append(
            await ask(connection, "PATCH", f"/v1/endpoints/{id}", {"event_types": [f"document.v{number}"]})
        )
        await asyncio.sleep(max(0.0, began + number * each_s - time.perf_counter()))
    connection[1].close()


async def one_round(
    servers: list[Server], seconds: float, *, changes: int, endpoints: int
) -> dict[str, float]:
    before = [cpu_s(server.pid) for server in servers]
    until = time.perf_counter() + seconds
    took: list[float] = []
    bad: list[int] = []
    done: list[int] = []
    work = [publish(server.port, until, took, bad) for server in servers for _ in range(CONNECTIONS)]
    if changes:
        work.append(change(servers[0].port, until, 1 / changes, endpoints, done))
    await asyncio.gather(*work)
    used = sum(cpu_s(server.pid) for server in servers) - sum(before)
    took.sort()
    return {
        "accepts_per_s": len(took) / seconds,
        "p50_ms": took[len(took) // 2] * 1000,
        "p99_ms": took[len(took) * 99 // 100] * 1000,
        "worst_ms": took[-1] * 1000,
        "refused": len(bad),
        "cpu_us_per_accept": used / len(took) * 1e6,
        "changes_per_s": sum(status == 200 for status in done) / seconds,
    }


# -- what servers take ------------------------------------------------------------------------------------


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def late(server: Server) -> dict[float, float]:
    """How many timers fired at most so late, by seconds."""
    _, text = server.api.raw("GET", "/metrics")
    return {float(bound): float(count) for bound, count in BUCKET.findall(text.decode())}


def share_late(before: dict[float, float], after: dict[float, float]) -> float:
    """The share of timers between the two looks that fired more than `STALL_S` late."""
    total = max(after.values()) - max(before.values())
    return 1 - (after[STALL_S] - before[STALL_S]) / total if total else 0.0


def latest(before: dict[float, float], after: dict[float, float]) -> float:
    """The bound in seconds under which every timer between the two looks fired."""
    total = max(after.values()) - max(before.values())
    return min((bound for bound in after if after[bound] - before.get(bound, 0.0) >= total), default=0.0)


def started(launch: Launch) -> tuple[Server, dict[str, float]]:
    server = Server(launch)
    server.start()
    seconds = server.wait_ready()
    return server, {
        "start_s": seconds,
        "start_cpu_s": cpu_s(server.pid),
        "resident_mb": resident(server.pid) / 1e6,
    }


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
    try:
        starts = []
        for _ in range(2 if postgres is not None else 1):
            server, start = await asyncio.to_thread(started, launch)
            servers.append(server)
            starts.append(start)
        # Warm: the first change of a process reads statements and fills caches.
        await one_round(servers, given.seconds, changes=given.changes, endpoints=count)
        quiet, changing, stalls = [], [], {"quiet": 0.0, "changing": 0.0}
        late_shares: dict[str, list[float]] = {"quiet": [], "changing": []}
        for _ in range(given.rounds):
            for found, changes, name in ((quiet, 0, "quiet"), (changing, given.changes, "changing")):
                before = [late(server) for server in servers]
                found.append(await one_round(servers, given.seconds, changes=changes, endpoints=count))
                after = [late(server) for server in servers]
                stalls[name] = max(stalls[name], *map(latest, before, after))
                late_shares[name] += map(share_late, before, after)
    finally:
        for server in servers:
            server.stop()
        if postgres is not None:
            postgres.close()
    middle = {
        name: {key: round(statistics.median(one[key] for one in found), 2) for key in found[0]}
        for name, found in (("quiet", quiet), ("changing", changing))
    }
    speed = [
        with_.get("accepts_per_s", 0) / without["accepts_per_s"]
        for without, with_ in zip(quiet, changing, strict=True)
    ]
    return {
        "ledger": given.ledger, "nodes": len(servers), "endpoints": count, "tenants": TENANTS,
        "start": starts, "start_empty": bare,
        "bytes_each": round((starts[0]["resident_mb"] - bare["resident_mb"]) * 1e6 / count),
        **middle, "speed_ratio": round(statistics.median(speed), 3),
        "p99_worse_ms": round(middle["changing"]["p99_ms"] - middle["quiet"]["p99_ms"], 1),
        "loop_late_below_s": stalls,
        "loop_late_over_20_ms": {name: round(statistics.mean(found), 4) for name, found in late_shares.items()},
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ledger", choices=("sqlite", "pg"), default="sqlite")
    parser.add_argument("--endpoints", type=int, default=100_000)
    parser.add_argument("--changes", type=int, default=50, help="a second")
    parser.add_argument("--seconds", type=float, default=5.0, help="of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--record", type=Path, help="write the figures to this file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="surehook-bench-") as folder:
        figures = asyncio.run(run(given, Path(folder)))
    text = json.dumps(figures, indent=1)
    if given.record is not None:
        given.record.write_text(text + "\n")
    print(text)
    print(
        f"\n{'':12}{'accepts/s':>11}{'p50 ms':>9}{'p99 ms':>9}{'worst ms':>10}{'CPU us':>9}{'changes/s':>11}"
        f"{'late ms':>9}{'> 20 ms':>9}"
    )
    for name in ("quiet", "changing"):
        one = figures[name]
        print(
            f"{name:12}{one['accepts_per_s']:11.0f}{one['p50_ms']:9.1f}{one['p99_ms']:9.1f}{one['worst_ms']:10.1f}"
            f"{one['cpu_us_per_accept']:9.0f}{one['changes_per_s']:11.1f}"
            f"{figures['loop_late_below_s'][name] * 1000:9.0f}{figures['loop_late_over_20_ms'][name]:9.1%}"
        )


if __name__ == "__main__":
    main()
