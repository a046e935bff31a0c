"""Cost of a million dead letters that lie: `python -m lab.bench.dead_letters [--ledger sqlite|pg] [--rows N] [--minutes M]`.

A ledger is filled with dead letters that are ten to twenty days beyond their retention, as a receiver leaves them that was
away: each with its event, its history and a body of 600 bytes. Then retention has its rounds, one for each minute of a
clock that is handed in, with the looks that stand beside it (blocks on SQLite). Minutes in which it still had something to do
(days that are retired, places that are found) are counted apart; what is judged is what every minute costs after that, for
as long as the dead letters lie there: CPU of this process and, on PostgreSQL, of the server's backends.
"""
# ruff: noqa: T201 (a program that prints)

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg

from lab.bench.lists import cpu_s, opened
from lab.bench.lists_postgres import FILL_S, SETTINGS
from lab.bench.lists_sqlite import FAST, NOW
from surehook.core.instants import DAY_MS, MINUTE_MS
from surehook.delivery.looks import LISTS_S
from surehook.delivery.prune import Prune
from surehook.delivery.settings import EngineSettings
from surehook.ledgers.postgres.ledger import PostgresLedger
from surehook.ledgers.postgres.partitions import first_id, name
from surehook.ledgers.sqlite import SqliteLedger
from tests.servers import Postgres

DAYS, OLDEST_DAYS = 10, 50
BODY_BYTES = 600
HEADERS = b"h" * 450  # of the last request, as an endpoint with two headers of its own has them
LIMIT_MS = 10.0
SETTLE_MINUTES = 5  # in which nothing is left to do, before minutes are judged

_EVENT_COLUMNS = "id, tenant, type, schema_version, accepted_at, digest, fan_out, body"
_LINE_COLUMNS = """delivery, seq, lane, started_at, outcome, unknown, status, "end", finished_at, tenant, endpoint, type, event,
  headers, body"""


class Minutes:
    """A clock that goes by minutes, and on which nobody waits."""

    def __init__(self, now: int) -> None:
        self.at = now

    def now(self) -> int:
        return self.at

    def boot(self) -> float:
        return self.at / 1000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


def instant_of(number: int, rows: int) -> int:
    """The instant of a dead letter, evenly over ten days."""
    return NOW - OLDEST_DAYS * DAY_MS + number * DAYS * DAY_MS // rows


def fill_sqlite(path: Path, rows: int) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for setting in FAST:
        connection.execute(f"pragma {setting}").fetchall()
    connection.execute("begin")
    body, digest, endpoint = bytes(BODY_BYTES), bytes(32), bytes(16)
    for start in range(0, rows, 50_000):
        made = []
        for number in range(start, min(rows, start + 50_000)):
            at = instant_of(number, rows)
            made.append((at.to_bytes(6, "big") + b"\x70\x00" + number.to_bytes(8, "big"), at))
        connection.executemany(
            f"insert into event ({_EVENT_COLUMNS}) values (?, 'acme', 'document.signed', '1', ?, ?, 1, ?)",
            ((id, at, digest, body) for id, at in made),
        )
        connection.executemany(
            f"insert into attempt ({_LINE_COLUMNS}) values (?, 703, 1, ?, 'refused', 0, 500, 'dead', ?, 'acme', ?, "
            "'document.signed', ?, x'', x'')",
            ((id, at, at, endpoint, id) for id, at in made),
        )
        connection.executemany(
            "insert into dead_letter (delivery, request_headers) values (?, ?)",
            ((id, HEADERS) for id, _ in made),
        )
    connection.execute("commit")
    connection.close()


def fill_postgres(server: Postgres, database: str, rows: int) -> None:
    """Day by day, each a partition of its own."""
    for place in range(DAYS):
        day = NOW // DAY_MS - OLDEST_DAYS + place
        for table in ("event", "attempt"):
            bounds = f"('\\x{first_id(day).hex()}') to ('\\x{first_id(day + 1).hex()}')"
            server.ask(
                f"create table {name(table, day)} partition of {table} for values from {bounds}", database
            )
        of_day = rows // DAYS
        made = f"""(
            select decode(lpad(to_hex(at), 12, '0') || '7000' || lpad(to_hex(n), 16, '0'), 'hex') as id, at from (
              select n, {day * DAY_MS} + n::bigint * {DAY_MS} / {of_day} as at from generate_series(0, {of_day} - 1) n
            ) s
        ) m"""
        for sql in (
            f"insert into {name('event', day)} ({_EVENT_COLUMNS}) select id, 'acme', 'document.signed', '1', at, "
            "decode(repeat(md5(id::text), 2), 'hex'), 1, "
            f"decode(repeat(md5(id::text), {BODY_BYTES // 16}), 'hex') from {made}",
            f"insert into {name('attempt', day)} ({_LINE_COLUMNS}) select id, 703, 1, at, 'refused', false, 500, "
            f"'dead', at, 'acme', '\\x00', 'document.signed', id, '', '' from {made}",
            f"insert into dead_letter (delivery, request_headers) select id, '\\x{HEADERS.hex()}' from {made}",
        ):
            server.ask(sql, database, seconds=FILL_S)
    server.ask("vacuum analyze", database, seconds=FILL_S)


async def rounds(
    ledger: Any, spent_s: Callable[[], float], minutes: int, rows: int
) -> tuple[list[float], list[float]]:
    """CPU milliseconds of minutes in which something was left to do, and of those after that."""
    clock = Minutes(NOW)
    retention = Prune(ledger=ledger, clock=clock, settings=EngineSettings())
    busy: list[float] = []
    calm: list[float] = []
    while len(calm) < minutes + SETTLE_MINUTES:
        clock.at += MINUTE_MS
        began = spent_s()
        await retention.round()
        for _ in range(int(MINUTE_MS / 1000 / LISTS_S)):
            while await ledger.index_lists():
                pass
        took = (spent_s() - began) * 1e3
        if took > 5 * LIMIT_MS and len(calm) < SETTLE_MINUTES:
            busy += [*calm, took]
            calm.clear()
        else:
            calm.append(took)
    assert await ledger.dead_letter_count() == rows, "dead letters stay until somebody deals with them"
    return busy + calm[:SETTLE_MINUTES], calm[SETTLE_MINUTES:]


async def on_sqlite(path: Path, minutes: int, rows: int) -> tuple[list[float], list[float]]:
    ledger = SqliteLedger(str(path))
    await ledger.open(now=NOW)
    try:
        return await rounds(ledger, time.process_time, minutes, rows)
    finally:
        await ledger.close()


async def on_postgres(url: str, minutes: int, rows: int) -> tuple[list[float], list[float]]:
    ledger = PostgresLedger(url)
    await ledger.open(now=NOW)
    await ledger.prune(events_before=0, bodies_before=0, limit=1, now=NOW)  # its connection is there then
    connection = await asyncpg.connect(url)
    keepers = await connection.fetch(
        "select pid from pg_stat_activity where application_name = 'surehook keep' and datname = current_database()"
    )
    await connection.close()
    try:
        return await rounds(
            ledger, lambda: time.process_time() + sum(cpu_s(row["pid"]) for row in keepers), minutes, rows
        )
    finally:
        await ledger.close()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="dead letters (1,000,000)")
    parser.add_argument("--minutes", type=int, default=60, help="rounds that are judged (60)")
    parser.add_argument("--ledger", choices=("sqlite", "pg"), default="sqlite")
    parser.add_argument("--record", type=Path, help="keep the figures here, as JSON")
    given = parser.parse_args()
    began = time.monotonic()
    if given.ledger == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "book.db"
            asyncio.run(opened(SqliteLedger(str(path))))
            fill_sqlite(path, given.rows)
            print(f"{given.rows} dead letters in {time.monotonic() - began:.0f} s", flush=True)
            busy, calm = asyncio.run(on_sqlite(path, given.minutes, given.rows))
    else:
        server = Postgres.new(settings=SETTINGS)
        try:
            server.ask("create database letters")
            asyncio.run(opened(PostgresLedger(server.url("letters"))))
            fill_postgres(server, "letters", given.rows)
            print(f"{given.rows} dead letters in {time.monotonic() - began:.0f} s", flush=True)
            busy, calm = asyncio.run(on_postgres(server.url("letters"), given.minutes, given.rows))
        finally:
            server.close()
    mean = sum(calm) / len(calm)
    said = {
        "ledger": given.ledger, "rows": given.rows, "first_minutes": len(busy), "first_s": round(sum(busy) / 1e3, 1),
        "minutes": len(calm), "mean_ms": round(mean, 2), "most_ms": round(max(calm), 2), "bound_ms": LIMIT_MS,
    }  # fmt: skip
    print(
        f"first {len(busy)} minutes, in which there was something to do: {sum(busy) / 1e3:.1f} s of CPU in all"
    )
    print(
        f"then {len(calm)} minutes: {mean:.2f} ms of CPU a minute, at most {max(calm):.2f}; bound {LIMIT_MS:.0f}"
    )
    if given.record is not None:
        given.record.write_text(json.dumps(said, indent=1) + "\n")
    return 0 if mean <= LIMIT_MS else 1


if __name__ == "__main__":
    raise SystemExit(main())
