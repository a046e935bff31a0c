"""Rows that were there before: `generate_series` on the server, nothing over the wire. For `scale.py`."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

from lab.bench.scale_fleet import TYPE, Fleet
from lab.bench.stage import TENANT
from surehook.core.instants import DAY_MS
from surehook.ledgers.postgres.connecting import connect_to
from surehook.ledgers.postgres.indexing import index_one
from surehook.ledgers.postgres.partitions import first_id, name
from surehook.ledgers.postgres.session import PostgresSession

FILL_S = 3_000.0  # one statement, at most
WAITING = 200  # paused endpoints that share what is parked
WAITING_TYPE = "waiting"
DAYS = 10  # that share what is old; the newest is today
SIDE_BY_SIDE = 2

_EVENTS = """
insert into {table} (id, tenant, type, schema_version, accepted_at, digest, fan_out, body)
select
  decode(lpad(to_hex(at), 12, '0') || '7' || substr(chance, 1, 3) || '8' || substr(chance, 5, 15), 'hex'),
  '{tenant}', '{type}', '1', at, decode(chance || chance, 'hex'), 1, decode(repeat(chance, 38), 'hex')
from (
  select {start} + n::bigint * {span} / {rows} as at, md5('{seed}:' || n) as chance
  from generate_series(0, {rows} - 1) n
) made
"""
_PARKED = """
insert into delivery (
  id, attempt, lane, due_at, parked, parked_at, endpoint, event, tenant, type, born_at
)
select
  substr(e.id, 1, 10) || substr(e.digest, 1, 6), 1, 0, e.accepted_at, 'paused', e.accepted_at, p.id, e.id, e.tenant,
  e.type, e.accepted_at
from event e join (
  select id, row_number() over (order by id) - 1 as place from endpoint where status = 'paused'
) p on p.place = (get_byte(e.digest, 0) * 256 + get_byte(e.digest, 1)) % {endpoints}
where e.type = '{type}'
"""
_LINES = """
insert into {table} (
  delivery, seq, lane, started_at, outcome, unknown, status, address, total_us, "end", finished_at, tenant, endpoint,
  type, event, headers, body
)
select
  substr(e.id, 1, 10) || substr(e.digest, 1, 6), 127, 0, e.accepted_at, 'delivered', false, 200, '203.0.113.7', 12345,
  'delivered', e.accepted_at + 40, e.tenant, (select id from endpoint order by id limit 1), e.type, e.id,
  '\\x636f6e74656e742d747970653a20746578742f706c61696e0d0a', '\\x6f6b'
from {events} e
"""


def park(fleet: Fleet, rows: int) -> None:
    """Deliveries of paused endpoints. The fleet is stopped meanwhile."""
    for number in range(WAITING):
        endpoint = fleet.api.endpoint(TENANT, fleet.sink.url(f"/ok/w{number}"), [WAITING_TYPE])
        fleet.api.set_status(endpoint, "paused")
    fleet.stop()
    now = int(time.time() * 1000)
    span = min(DAY_MS // 24, now % DAY_MS)  # within today
    fleet.ask(
        _EVENTS.format(
            table="event",
            tenant=TENANT,
            type=WAITING_TYPE,
            start=now - span,
            span=span,
            rows=rows,
            seed="parked",
        ),
        seconds=FILL_S,
    )
    fleet.ask(_PARKED.format(endpoints=WAITING, type=WAITING_TYPE), seconds=FILL_S)
    fleet.ask("vacuum (analyze) event", seconds=FILL_S)
    fleet.ask("vacuum (analyze) delivery", seconds=FILL_S)
    fleet.start()


def remember(fleet: Fleet, rows: int) -> None:
    """Finished events and their attempts, over ten days; those that are over are indexed, as retention does it."""
    fleet.stop()
    now = int(time.time() * 1000)
    today = now // DAY_MS
    there = {row[0] for row in fleet.ask("select relname from pg_class where relkind = 'r'")}

    def one_day(place: int) -> None:
        day = today - place
        span = DAY_MS if place else now % DAY_MS
        made = {table: name(table, day) for table in ("event", "attempt")}
        for table, partition in made.items():
            if partition in there:
                continue
            fleet.ask(
                f"create table {partition} (like {table} including defaults including constraints); "
                f"alter table {table} attach partition {partition} "
                f"for values from ('\\x{first_id(day).hex()}') to ('\\x{first_id(day + 1).hex()}')",
                seconds=FILL_S,
            )
        fleet.ask(
            _EVENTS.format(
                table=made["event"], tenant=TENANT, type=TYPE, start=day * DAY_MS, span=span,
                rows=max(1, rows // DAYS), seed=day,
            ),
            seconds=FILL_S,
        )  # fmt: skip
        fleet.ask(_LINES.format(table=made["attempt"], events=made["event"]), seconds=FILL_S)
        for partition in made.values():
            fleet.ask(f"vacuum (analyze) {partition}", seconds=FILL_S)

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        list(pool.map(one_day, range(DAYS)))
    asyncio.run(_index(fleet, now))
    fleet.start()


async def _index(fleet: Fleet, now: int) -> None:
    session = PostgresSession(connect_to(fleet.server.url(fleet.name), "keep"), patience_s=FILL_S)
    while await index_one(session, now=now):
        pass
    await session.close()
