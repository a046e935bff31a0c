"""Thirty days of deliveries on one SQLite file, as recording would have left them.

The schema is the product's; the rows go in as they come, in one transaction and without waiting for the disk. One delivery
in a hundred has a retry, which ends an hour later, so that lines come in another order than their ids. Beside them: open
deliveries, dead letters, receipts and notices, and values that one event in fifty thousand has.
"""

from __future__ import annotations

import heapq
import random
import sqlite3
from pathlib import Path
from typing import Any

from surehook.core.instants import DAY_MS, HOUR_MS

NOW = 1_767_225_600_000
DAYS = 30
TENANTS, ENDPOINTS, TYPES, FAN_OUT = 200, 2_000, 20, 4
RARE_EVERY = 200_000  # lines; what only one in so many has: fifty of ten million, in all places
OPEN_SHARE, NOTICE_SHARE, RECEIPT_SHARE = 0.01, 0.02, 0.02
RARE_TENANT, RARE_TYPE, RARE_ENDPOINT = "tenant_rare", "type.rare", b"r" * 16
FAST = ("journal_mode = off", "synchronous = off", "cache_size = -524288", "locking_mode = exclusive")
_AT_ONCE = 50_000

_EVENT = "insert into event (id, tenant, type, schema_version, subject, correlation_id, accepted_at, digest, fan_out, body)"
_LINE = """insert into attempt (
  delivery, seq, lane, started_at, outcome, unknown, status, address, total_us, end, finished_at, tenant, endpoint, type,
  event, headers, body
)"""
_OPEN = """insert into delivery (
  id, attempt, lane, due_at, parked, parked_at, endpoint, event, tenant, type, born_at, outcome
)"""
_NOTICE = "insert into notice (id, at, kind, tenant, endpoint, delivery, detail)"
_RECEIPT = "insert into receipt (event, endpoint, tenant, delivery, stage, said, changed_at)"
_ENDPOINT = (
    'insert into endpoint (id, tenant, url, event_types, status, "order", headers, created_at, updated_at)'
)
_HEADERS = b"content-type: text/plain\r\ncontent-length: 2\r\nserver: sink\r\n"


class Filling:
    """One run through thirty days. Rows gather by table and go in `_AT_ONCE`."""

    def __init__(self, connection: sqlite3.Connection, rows: int, *, now: int) -> None:
        self._connection = connection
        self._rows = rows
        self._now = now
        self._chance = random.Random(rows)
        self._waiting: dict[str, list[tuple[Any, ...]]] = {}
        self._later: list[tuple[int, tuple[Any, ...]]] = []  # retries by the time of their end
        self._made = 0

    def run(self) -> None:
        events = max(1, self._rows // FAN_OUT)
        start, length = self._now - (DAYS + 1) * DAY_MS, DAYS * DAY_MS
        for number in range(events):
            at = start + number * length // events
            self._come(at)
            self._event(at)
        self._come(self._now)
        self._configure(start)
        for sql in list(self._waiting):
            self._flush(sql)

    def _event(self, at: int) -> None:
        bits = self._chance.getrandbits(256).to_bytes(32, "big")
        id = at.to_bytes(6, "big") + bytes((0x70 | bits[0] & 15, bits[1], 0x80 | bits[2] & 63)) + bits[3:10]
        tenant, type = int(self._chance.random() ** 5 * TENANTS), f"type.{bits[10] % TYPES}"
        subject = f"doc_{self._made // (3 * FAN_OUT)}"
        is_rare = self._made % RARE_EVERY < FAN_OUT
        name = RARE_TENANT if is_rare else f"tenant_{tenant}"
        type = RARE_TYPE if is_rare else type
        self._add(_EVENT, (id, name, type, "1", subject, f"c{self._made}", at, bits, FAN_OUT, bits * 6))
        for place in range(FAN_OUT):
            nth = int(self._chance.random() ** 3 * (ENDPOINTS // TENANTS))
            endpoint = RARE_ENDPOINT if is_rare else (tenant + TENANTS * nth).to_bytes(16, "big")
            delivery = id[:10] + bits[11 + place : 16 + place] + bytes((place,))
            self._delivery(delivery, id, name, endpoint, type, at, place == 0 and is_rare)
            self._made += 1

    def _delivery(
        self, id: bytes, event: bytes, tenant: str, endpoint: bytes, type: str, at: int, rare: bool
    ) -> None:
        luck = self._chance.random()
        if luck < OPEN_SHARE and not rare:
            self._add(_OPEN, (id, 2, 1, at, "breaker", at, endpoint, event, tenant, type, at, "refused"))
            return
        failed = (
            id,
            127,
            0,
            at,
            "timed_out",
            0,
            None,
            "203.0.113.7",
            9_000,
            None,
            None,
            tenant,
            endpoint,
            type,
        )
        said = ("garbled", "dropped") if rare else ("delivered", "delivered")
        if not rare and luck > 0.97:
            said = ("refused", "dead") if luck < 0.995 else ("timed_out", "cancelled")
        seq, at_end = 127, at + 40
        if self._chance.random() < 0.01:
            self._add(_LINE, (*failed, event, _HEADERS, b""))
            seq, at_end = 191, at + HOUR_MS
        line = (id, seq, 0 if seq == 127 else 1, at, said[0], 0, 200, "203.0.113.7", 12_345, said[1], at_end)
        row = (*line, tenant, endpoint, type, event, _HEADERS, b"ok")
        if seq == 127:
            self._add(_LINE, row)
        else:
            heapq.heappush(self._later, (at_end, row))
        if said[1] == "dead":
            self._add("insert into dead_letter (delivery)", (id,))
        if luck < NOTICE_SHARE:
            kind = "delivery.rare" if rare else "delivery.dead"
            self._add(_NOTICE, (at.to_bytes(6, "big") + id[6:], at, kind, tenant, endpoint, id, "{}"))
        if rare or luck > 1 - RECEIPT_SHARE:
            stage = 4 if rare else 2
            self._add(_RECEIPT, (event, endpoint, tenant, id, stage, None, at))

    def _come(self, at: int) -> None:
        """Retries that have ended by then."""
        while self._later and self._later[0][0] <= at:
            self._add(_LINE, heapq.heappop(self._later)[1])

    def _configure(self, at: int) -> None:
        for tenant in [RARE_TENANT, *(f"tenant_{number}" for number in range(TENANTS))]:
            self._add("insert into tenant (id, name, created_at)", (tenant, tenant, at))
        for number in range(ENDPOINTS):
            status = "paused" if number == 7 else "active"
            values = (
                number.to_bytes(16, "big"),
                f"tenant_{number % TENANTS}",
                f"https://r{number}.example/",
                '["*"]',
            )
            self._add(_ENDPOINT, (*values, status, "none", "{}", at, at))

    def _add(self, sql: str, row: tuple[Any, ...]) -> None:
        waiting = self._waiting.setdefault(sql, [])
        waiting.append(row)
        if len(waiting) >= _AT_ONCE:
            self._flush(sql)

    def _flush(self, sql: str) -> None:
        rows = self._waiting[sql]
        if rows:
            # A receipt is one by event and endpoint, whatever the number of deliveries.
            words = sql.replace("insert into", "insert or ignore into")
            places = ",".join("?" * len(rows[0]))
            self._connection.executemany(f"{words} values ({places})", rows)
            rows.clear()


def fill(path: Path, rows: int, *, now: int) -> None:
    """Fill a file that has the schema and nothing else."""
    connection = sqlite3.connect(path, isolation_level=None)
    for setting in FAST:
        connection.execute(f"pragma {setting}").fetchall()
    connection.execute("begin")
    Filling(connection, rows, now=now).run()
    connection.execute("commit")
    connection.close()
