"""Measures the outbox: CPU that `put` adds to a transaction with one insert, and events a second of the relay.

`put` is compared with a plain insert of a row of the same size by the same library, in turns; both are in a transaction of their
own with the application's insert. CPU is that of the application alone.
"""

from __future__ import annotations

import argparse
import asyncio
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from lab.bench import processes
from lab.bench.server import KEY, Launch, Server
from surehook.core.outbox_tables import create
from surehook.outbox import Outbox

DATA = {"document_id": "doc_42", "signer": "ana@example.com", "state": "signed", "at": "2026-01-02T03:04:05Z"}
BARE = (
    "INSERT INTO surehook_outbox (id, aggregatetype, aggregateid, type, payload, tenant, subject, created_at) "
    "VALUES ({})"
)
ROW = (
    "evt_01jk0000000000000000000000",
    "document",
    "doc_42",
    "document.signed",
    str(DATA),
    "acme",
    "doc_42",
    1,
)
OWN = "INSERT INTO document (name) VALUES ('doc_42')"
ROUNDS, EACH = 7, 400
WRITERS, SPEED_S, ARRIVE_S = 16, 3.0, 10.0


class PutCost(msgspec.Struct, frozen=True):
    """Medians of rounds in turns, in microseconds of the application's CPU a transaction."""

    library: str
    without_us: float
    bare_insert_us: float
    put_us: float

    @property
    def added_us(self) -> float:
        return self.put_us - self.without_us


async def asyncpg_cost(url: str) -> PutCost:
    import asyncpg

    outbox, connection = Outbox(tenant="acme"), await asyncpg.connect(url)
    bare = BARE.format(", ".join(f"${number}" for number in range(1, 9)))

    async def without() -> None:
        async with connection.transaction():
            await connection.execute(OWN)

    async def inserts() -> None:
        async with connection.transaction():
            await connection.execute(OWN)
            await connection.execute(bare, *ROW)

    async def puts() -> None:
        async with connection.transaction():
            await connection.execute(OWN)
            await outbox.aput(connection, "document.signed", DATA, subject="doc_42")

    found = await _in_turns(without, inserts, puts)
    await connection.close()
    return PutCost("asyncpg", *found)


async def psycopg_cost(url: str) -> PutCost:
    import psycopg

    outbox = Outbox(tenant="acme")
    bare = BARE.format(", ".join(["%s"] * 8))
    with psycopg.connect(url) as connection:

        async def without() -> None:
            connection.execute(OWN)
            connection.commit()

        async def inserts() -> None:
            connection.execute(OWN)
            connection.execute(bare, ROW)
            connection.commit()

        async def puts() -> None:
            connection.execute(OWN)
            outbox.put(connection, "document.signed", DATA, subject="doc_42")
            connection.commit()

        return PutCost("psycopg", *await _in_turns(without, inserts, puts))


async def _in_turns(*works: Callable[[], Awaitable[None]]) -> list[float]:
    costs: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for work, found in zip(works, costs, strict=True):
            began = time.process_time()
            for _ in range(EACH):
                await work()
            found.append((time.process_time() - began) / EACH * 1e6)
    return [round(statistics.median(found), 1) for found in costs]


async def same_database(url: str, folder: pathlib.Path) -> dict[str, Any]:
    """Transactions a second with a bare insert and with `put`, in turns, while a server publishes; and the time from the
    commit to the arrival at 200 a second."""
    import asyncpg

    from lab.bench.stage import receiver

    pool = await asyncpg.create_pool(url, min_size=WRITERS, max_size=WRITERS)
    outbox = Outbox(tenant="acme")
    bare = BARE.replace("surehook_outbox", "bare").format(", ".join(f"${number}" for number in range(1, 9)))
    await pool.execute("CREATE TABLE bare (LIKE surehook_outbox INCLUDING ALL)")

    async def inserts(connection: Any) -> None:
        await connection.execute(bare, *ROW)

    async def puts(connection: Any) -> None:
        await outbox.aput(connection, "document.viewed", DATA, subject="doc_42")

    async def a_second(work: Callable[[Any], Awaitable[None]]) -> float:
        until, done = time.monotonic() + SPEED_S, 0

        async def one() -> None:
            nonlocal done
            async with pool.acquire() as connection:
                while time.monotonic() < until:
                    async with connection.transaction():
                        await work(connection)
                    done += 1

        await asyncio.gather(*(one() for _ in range(WRITERS)))
        return done / SPEED_S

    async def empty() -> None:
        while await pool.fetchval("SELECT count(*) FROM surehook_outbox"):  # noqa: ASYNC110 (another process)
            await asyncio.sleep(0.05)

    await pool.execute("TRUNCATE surehook_outbox; CREATE SCHEMA surehook")
    server = Server(
        Launch(
            folder=folder, database_url=f"{url}?search_path=surehook",
            settings={"SUREHOOK_OUTBOX_TABLE": "public.surehook_outbox"},
        )
    )  # fmt: skip
    apart = [(await a_second(inserts), await a_second(puts)) for _ in range(5)]
    await pool.execute("TRUNCATE surehook_outbox")
    with receiver() as sink:
        server.start()
        server.wait_ready()
        server.api.tenant("acme")
        server.api.endpoint("acme", sink.url("/ok"), ["document.signed"], None)
        turns = []
        for _ in range(5):
            turns.append((await a_second(inserts), await a_second(puts)))
            await empty()
        committed: dict[str, int] = {}
        async with pool.acquire() as connection:
            for number in range(int(200 * ARRIVE_S)):
                if not number:
                    began = time.monotonic()
                await asyncio.sleep(max(0.0, began + number / 200 - time.monotonic()))
                async with connection.transaction():
                    id = await outbox.aput(connection, "document.signed", DATA, subject="doc_42")
                committed[id] = time.monotonic_ns()
        await empty()
        while sink.count().answered < len(committed):  # noqa: ASYNC110 (another process)
            await asyncio.sleep(0.02)
        _, events, at, _ = sink.report().rows()
        late = sorted(
            (instant - committed[event.decode()]) / 1e6 for event, instant in zip(events, at, strict=True)
        )
        server.stop()
    await pool.close()
    return {
        "bare_per_s": round(statistics.median(turn[0] for turn in turns)),
        "put_per_s": round(statistics.median(turn[1] for turn in turns)),
        "ratio": round(statistics.median(turn[1] / turn[0] for turn in turns), 3),
        "ratio_without_server": round(statistics.median(turn[1] / turn[0] for turn in apart), 3),
        "commit_to_arrival_ms": {
            name: round(late[int(len(late) * part)], 2)
            for name, part in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
        },
    }


def relay_speed(url: str, rows: int, folder: pathlib.Path) -> dict[str, Any]:
    """Events a second that a relay brings from PostgreSQL to a server on SQLite, one endpoint-less tenant."""
    import psycopg

    server = Server(Launch(folder=folder))
    server.start()
    server.wait_ready()
    outbox = Outbox(tenant="acme")
    with psycopg.connect(url) as connection:
        connection.execute("TRUNCATE surehook_outbox")
        for _ in range(rows):
            outbox.put(connection, "document.signed", DATA, subject="doc_42")
        connection.commit()
    server.api.tenant("acme")
    surehook = str(pathlib.Path(sys.executable).with_name("surehook"))
    began = time.monotonic()
    relay = subprocess.Popen(
        [
            surehook,
            "outbox",
            "flush",
            "--database",
            url,
            "--server",
            f"http://127.0.0.1:{server.port}",
            "--api-key",
            KEY,
        ],
        env=processes.plain_environment(),
    )
    first = 0.0
    with psycopg.connect(url, autocommit=True) as connection:
        while relay.poll() is None:
            left = connection.execute("SELECT count(*) FROM surehook_outbox").fetchone()
            if not first and left is not None and left[0] < rows:
                first, before = time.monotonic(), left[0]
            if left is not None and left[0] == 0:
                break
            time.sleep(0.02)
        ended = time.monotonic()
    relay.wait()
    server.stop()
    return {
        "rows": rows, "seconds": round(ended - began, 2), "events_per_s": round(before / (ended - first)),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    given = parser.parse_args()
    import psycopg

    from tests.servers import Postgres

    postgres = Postgres.new(durable=True)
    try:
        with postgres.database() as url:
            with psycopg.connect(url) as connection:
                for statement in (*create("postgresql"), "CREATE TABLE document (name varchar(50))"):
                    connection.execute(statement)
            for cost in (asyncio.run(asyncpg_cost(url)), asyncio.run(psycopg_cost(url))):
                _say({"put": cost, "added_us": round(cost.added_us, 1)})
            with tempfile.TemporaryDirectory() as folder:
                _say({"same database": asyncio.run(same_database(url, pathlib.Path(folder)))})
            with tempfile.TemporaryDirectory() as folder:
                _say({"relay": relay_speed(url, given.rows, pathlib.Path(folder))})
    finally:
        postgres.close()
    return 0


def _say(value: object) -> None:
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
