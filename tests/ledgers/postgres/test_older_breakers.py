"""Breakers as the version before generations writes them, beside this one: nothing fails, and nothing newer is undone."""

from __future__ import annotations

from typing import Any

import asyncpg
from msgspec import structs

from surehook.core.model import BreakerRow
from tests.ledgers.desk import Desk
from tests.ledgers.making import NOW, TENANT

KEY = "https://receiver.example:443/hook"
ROW = BreakerRow(TENANT, KEY, "open", "failures", NOW, NOW + 300_000, 9, 20, NOW)
KEEP = """
insert into health (tenant, key, state, reason, opened_at, probe_at, failures, calls)
select * from unnest(
  $1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::int[], $8::int[]
)
on conflict (tenant, key) do update set
  state = excluded.state, reason = excluded.reason, opened_at = excluded.opened_at, probe_at = excluded.probe_at,
  failures = excluded.failures, calls = excluded.calls
"""
DROP = "delete from health h using unnest($1::text[], $2::text[]) v(tenant, key) where h.tenant = v.tenant and h.key = v.key"
READ = (
    "select tenant, key, state, reason, opened_at, probe_at, failures, calls from health order by tenant, key"
)


async def older(place: str, sql: str, *values: Any) -> list[Any]:
    connection = await asyncpg.connect(place)
    try:
        return [tuple(row) for row in await connection.fetch(sql, *values)]
    finally:
        await connection.close()


async def opens(place: str, *, at: int) -> None:
    await older(
        place, KEEP, [TENANT], [KEY], ["open"], ["failures"], [at], [at + 300_000], [9], [20]
    )  # fmt: skip


async def closes(place: str) -> None:
    await older(place, DROP, [TENANT], [KEY])


async def test_its_openings_have_the_generation_of_their_instant(desk: Desk, place: str) -> None:
    await opens(place, at=NOW)
    assert await desk.ledger.breakers() == [ROW]
    await opens(place, at=NOW + 7)
    (again,) = await desk.ledger.breakers()
    assert (again.opened_at, again.generation) == (NOW + 7, NOW + 7)


async def test_it_reads_what_this_version_writes(desk: Desk, place: str) -> None:
    await desk.record(breakers=[ROW])
    assert await older(place, READ) == [structs.astuple(ROW)[:-1]]
    await desk.record(breakers=[structs.replace(ROW, state="closed", generation=NOW + 1)])
    assert await older(place, READ) == []


async def test_it_undoes_no_newer_opening(desk: Desk, place: str) -> None:
    newer = structs.replace(ROW, opened_at=NOW + 5, generation=NOW + 6)
    await desk.record(breakers=[newer])
    await opens(place, at=NOW + 4)
    assert await desk.ledger.breakers() == [newer]


async def test_it_undoes_no_newer_closing(desk: Desk, place: str) -> None:
    await desk.record(breakers=[structs.replace(ROW, state="closed", generation=NOW + 5)])
    await opens(place, at=NOW + 5)
    assert await desk.ledger.breakers() == []
    await opens(place, at=NOW + 6)
    assert len(await desk.ledger.breakers()) == 1


async def test_its_closings_are_remembered(desk: Desk, place: str) -> None:
    await desk.record(breakers=[ROW])
    await closes(place)
    (closing,) = await desk.ledger.breakers([(TENANT, KEY)])
    assert (closing.state, closing.generation) == ("closed", NOW)
    await desk.record(breakers=[ROW])
    assert len(await desk.ledger.breakers([(TENANT, KEY)])) == 1, "what it closed does not open again"


async def test_an_opening_and_a_closing_that_do_not_see_one_another_come_to_one_end(
    desk: Desk, place: str
) -> None:
    connection = await asyncpg.connect(place)
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute(
        "insert into health values ($1, $2, 'open', 'failures', $3, $3, 1, 1, $3)", TENANT, KEY, NOW
    )
    await desk.record(breakers=[structs.replace(ROW, key="https://other.example:443/", state="closed")])
    await desk.ledger.record(
        [], node=desk.node, health=[], notices=[], now=NOW,
        breakers=[structs.replace(ROW, state="closed", generation=NOW + 1)],
    )  # fmt: skip
    await transaction.commit()
    await connection.close()
    assert await desk.ledger.breakers() == []
