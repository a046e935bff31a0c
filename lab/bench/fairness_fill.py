"""Due deliveries that were there before anybody starts, written past the product: a million within half a minute.

They fell due one after another within the last ten minutes. Of many endpoints each gets every event; a single one gets as
many events as rows.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import asyncpg

from lab.bench.stage import TENANT
from surehook.core import ids
from surehook.core.model import FIRST

SPAN_MS = 600_000
BODY = b'{"owed":"%s"}' % (b"x" * 100)
DIGEST = bytes(32)
EVENT = ("id", "tenant", "type", "schema_version", "accepted_at", "digest", "fan_out", "body")
DELIVERY = ("id", "attempt", "lane", "due_at", "endpoint", "event", "tenant", "type", "born_at")


class Owed:
    """The rows, the same each time they are asked for."""

    def __init__(self, endpoints: Sequence[bytes], rows: int) -> None:
        self._endpoints = endpoints
        self._events = rows // len(endpoints)
        self._begin = int(time.time() * 1000) - SPAN_MS

    def _each(self) -> Iterator[tuple[bytes, int]]:
        for number in range(self._events):
            at = self._begin + number * SPAN_MS // self._events
            yield ids.counted_uuid7(at, number & 0xFFF, number.to_bytes(8, "big")), at

    def events(self) -> Iterator[tuple[Any, ...]]:
        fan_out = len(self._endpoints)
        for event, at in self._each():
            yield event, TENANT, TENANT, "1", at, DIGEST, fan_out, BODY

    def deliveries(self) -> Iterator[tuple[Any, ...]]:
        for event, at in self._each():
            for number, endpoint in enumerate(self._endpoints):
                id = ids.delivery_id(event, number.to_bytes(6, "big"))
                yield id, 1, FIRST, at, endpoint, event, TENANT, TENANT, at


async def fill_postgres(url: str, owed: Owed) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.copy_records_to_table("event", records=owed.events(), columns=EVENT)
        await connection.copy_records_to_table("delivery", records=owed.deliveries(), columns=DELIVERY)
        await connection.execute("analyze event; analyze delivery")
    finally:
        await connection.close()


def fill_sqlite(path: Path, owed: Owed) -> None:
    connection = sqlite3.connect(path)
    try:
        connection.execute("pragma synchronous = off")
        for table, columns, rows in (
            ("event", EVENT, owed.events()),
            ("delivery", DELIVERY, owed.deliveries()),
        ):
            places = ", ".join("?" * len(columns))
            words = f"insert into {table} ({', '.join(columns)}) values ({places})"
            connection.executemany(words, rows)
            connection.commit()
    finally:
        connection.close()


def fill(url: str | None, path: Path, endpoints: Sequence[bytes], rows: int) -> float:
    """Write so many due rows into the ledger, which nobody serves meanwhile; the seconds it took."""
    began = time.monotonic()
    owed = Owed(endpoints, rows)
    if url is None:
        fill_sqlite(path, owed)
    else:
        asyncio.run(fill_postgres(url, owed))
    return time.monotonic() - began
