"""Thirty days of deliveries on PostgreSQL, made by the server itself: no rows over the wire.

Each day is loaded bare, indexed when it is attached, and vacuumed as time would have done. The shape is that of
`lists_sqlite.py`: tenants and endpoints of which few have most, four deliveries to an event, one in a hundred with a retry;
and beside them open deliveries, dead letters, receipts, notices, and values that one event in fifty thousand has.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from lab.bench.lists_sqlite import (
    DAYS,
    ENDPOINTS,
    FAN_OUT,
    NOTICE_SHARE,
    OPEN_SHARE,
    RARE_ENDPOINT,
    RARE_EVERY,
    RARE_TENANT,
    RARE_TYPE,
    RECEIPT_SHARE,
    TENANTS,
    TYPES,
)
from surehook.core.instants import DAY_MS
from surehook.ledgers.postgres.partitions import first_id, name
from tests.servers import Postgres

WORKERS = 2
SETTINGS = {
    "shared_buffers": "1GB", "max_wal_size": "8GB", "maintenance_work_mem": "256MB", "wal_level": "minimal",
    "max_wal_senders": "0", "checkpoint_timeout": "30min", "synchronous_commit": "off", "max_parallel_workers": "0",
}  # fmt: skip
FILL_S = 3_000.0  # one day's statement, at most
SAID = '{"accepted_at":1767225600000}'

_CONFIGURED = """
insert into tenant (id, name, created_at) select id, id, {start}
from (select '{rare_tenant}' as id union all select 'tenant_' || n from generate_series(0, {tenants} - 1) n) made;
insert into endpoint (id, tenant, url, event_types, status, "order", headers, created_at, updated_at)
select decode(lpad(to_hex(n), 32, '0'), 'hex'), 'tenant_' || n % {tenants}, 'https://r' || n || '.example/', '["*"]',
  case when n = 7 then 'paused' else 'active' end, 'none', '{{}}', {start}, {start}
from generate_series(0, {endpoints} - 1) n;
-- A number between 0 and 1 that a delivery has: the same for every table that is made from it.
create function luck(digest bytea, k int) returns float language sql immutable parallel safe
return (get_byte(digest, k) * 65536 + get_byte(digest, k + 8) * 256 + get_byte(digest, k + 16)) / 16777216.0
"""
_EVENTS = """
insert into {table} (id, tenant, type, schema_version, subject, correlation_id, accepted_at, digest, fan_out, body)
select
  decode(lpad(to_hex(at), 12, '0') || '7' || substr(chance, 1, 3) || '8' || substr(chance, 5, 15), 'hex'),
  case when rare then '{rare_tenant}' else 'tenant_' || floor(power(random(), 5) * {tenants})::int end,
  case when rare then '{rare_type}' else 'type.' || n % {types} end, '1', 'doc_' || n / 3, 'c' || n * {fan_out}, at,
  decode(chance || chance, 'hex'), {fan_out}, decode(repeat(chance, 12), 'hex')
from (
  select n, {start} + (n - {first})::bigint * {day_ms} / {rows} as at, md5(n::text) as chance,
    n % ({rare_every} / {fan_out}) = 0 as rare
  from generate_series({first}, {first} + {rows} - 1) n
) made
"""
_LINES = """
with made as materialized (
  select e.*, k, substr(e.id, 1, 10) || substr(e.digest, k + 10, 6) as delivery, luck(e.digest, k) as luck,
    case when luck(e.digest, k + 5) < 0.01 then 2 else 1 end as lines, e.tenant = '{rare_tenant}' as rare,
    case when e.tenant = '{rare_tenant}' then '\\x{rare_endpoint}'::bytea else decode(lpad(to_hex(
      substr(e.tenant, 8)::int + {tenants} * floor(power(luck(e.digest, k + 6), 3) * {per_tenant})::int), 32, '0'), 'hex')
    end as endpoint
  from {events} e cross join generate_series(1, {fan_out}) k
), opened as (
  insert into delivery (id, attempt, lane, due_at, parked, parked_at, endpoint, event, tenant, type, born_at, outcome)
  select delivery, 2, 1, accepted_at, 'breaker', accepted_at, endpoint, id, tenant, type, accepted_at, 'refused'
  from made where luck < {open_share} and not rare
), dead as (
  insert into dead_letter (delivery) select delivery from made
  where luck >= 0.975 and luck < 0.995 and not rare and not luck < {open_share}
), noticed as (
  insert into notice (id, at, kind, tenant, endpoint, delivery, detail)
  select substr(delivery, 1, 6) || substr(delivery, 7), accepted_at,
    case when rare then 'delivery.rare' else 'delivery.dead' end, tenant, endpoint, delivery, '{{}}'
  from made where rare or luck >= {open_share} and luck < {open_share} + {notice_share}
), heard as (
  insert into receipt (event, endpoint, tenant, delivery, stage, said, changed_at)
  select id, endpoint, tenant, delivery, case when rare then 3 else 1 end, '{said}'::bytea, accepted_at
  from made where rare or luck > 1 - {receipt_share}
  on conflict do nothing
)
insert into {table} (
  delivery, seq, lane, started_at, outcome, unknown, status, address, total_us, "end", finished_at, tenant, endpoint,
  type, event, headers, body
)
select
  delivery, case when line = 1 then 127 else 191 end, line - 1, accepted_at,
  case when line < lines then 'timed_out' when rare and k = 1 then 'garbled' when luck < 0.97 or rare then 'delivered'
    when luck < 0.995 then 'refused' else 'timed_out' end,
  false, case when luck < 0.97 then 200 else 500 end, '203.0.113.7', 12345,
  case when line < lines then null when rare and k = 1 then 'dropped' when luck < 0.975 or rare then 'delivered'
    when luck < 0.995 then 'dead' else 'cancelled' end,
  case when line = lines then accepted_at + 40 end, tenant, endpoint, type, id,
  '\\x636f6e74656e742d747970653a20746578742f706c61696e0d0a', '\\x6f6b'
from made cross join lateral generate_series(1, lines) line
where rare or luck >= {open_share}
"""


def fill(server: Postgres, database: str, rows: int, *, now: int) -> None:
    """Fill a database that has the schema and nothing else. The newest day is the one before `now`."""
    count = max(1, rows // DAYS // FAN_OUT)
    words = {
        "day_ms": DAY_MS, "rows": count, "types": TYPES, "fan_out": FAN_OUT, "tenants": TENANTS, "endpoints": ENDPOINTS,
        "per_tenant": ENDPOINTS // TENANTS, "rare_every": RARE_EVERY, "rare_tenant": RARE_TENANT,
        "rare_type": RARE_TYPE, "rare_endpoint": RARE_ENDPOINT.hex(), "open_share": OPEN_SHARE,
        "notice_share": NOTICE_SHARE, "receipt_share": RECEIPT_SHARE, "said": SAID,
    }  # fmt: skip
    start = (now // DAY_MS - DAYS) * DAY_MS
    server.ask(_CONFIGURED.format(start=start, **words), database, seconds=FILL_S)

    def one_day(place: int) -> None:
        day = now // DAY_MS - 1 - place
        its = {
            **words,
            "start": day * DAY_MS,
            "first": (DAYS - 1 - place) * count,
            "events": name("event", day),
        }
        for table, sql in (("event", _EVENTS), ("attempt", _LINES)):
            made = name(table, day)
            bounds = f"('\\x{first_id(day).hex()}') to ('\\x{first_id(day + 1).hex()}')"
            there = server.ask(f"select to_regclass('{made}')", database)[0][0]
            if there:  # made with the schema, beside today
                server.ask(f"alter table {table} detach partition {made}; drop table {made}", database)
            server.ask(
                f"create table {made} (like {table} including defaults including constraints);"
                + sql.format(table=made, **its)
                + f"; alter table {table} attach partition {made} for values from {bounds}",
                database,
                seconds=FILL_S,
            )
            server.ask(f"vacuum (analyze) {made}", database, seconds=FILL_S)

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(one_day, range(DAYS)))
    server.ask("analyze", database, seconds=FILL_S)
