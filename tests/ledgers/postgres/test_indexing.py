"""Days that are over are indexed for lists, and lists say the same as before, sooner."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from surehook.core.instants import DAY_MS, HOUR_MS
from surehook.core.receipt import word
from surehook.core.receipt_message import Said
from surehook.ledgers.common.indexes import HIGHEST, LOOKS_MAX, LOWEST
from surehook.ledgers.postgres import indexing
from surehook.ledgers.postgres.indexing import index_one, list_indexes
from surehook.ledgers.postgres.partitions import day_of, first_id
from surehook.ports.reading import DeliveryFilter, EventFilter
from tests.ledgers.desk import Desk
from tests.ledgers.making import NOW, TENANT
from tests.ledgers.postgres.test_retention import make_day

TODAY = day_of(NOW)
LATER = NOW + 2 * HOUR_MS  # yesterday is over by then


async def index_all(desk: Desk, *, now: int = LATER) -> None:
    async with desk.ledger._pruning.lend() as session:
        while await index_one(session, now=now):
            pass


async def below(desk: Desk) -> bytes:
    async with desk.ledger._listing.lend() as session:
        found = await list_indexes(session)
    each = [*found.lines.values(), *found.events.values()]
    assert found.receipts == any(below != LOWEST for below in each)
    (upto,) = set(each)  # of every table and column
    return upto


async def test_days_are_indexed_when_they_are_over(desk: Desk) -> None:
    assert await below(desk) == LOWEST
    await index_all(desk, now=NOW)  # yesterday has only just ended
    assert await below(desk) == first_id(TODAY - 1)
    await index_all(desk)
    assert await below(desk) == first_id(TODAY)
    await index_all(desk, now=NOW + 30 * DAY_MS)
    assert await below(desk) == HIGHEST


async def test_an_old_day_that_comes_later_is_not_taken_for_indexed(desk: Desk, beside: Any) -> None:
    await index_all(desk)
    await make_day(beside, TODAY - 9)
    assert await below(desk) == first_id(TODAY - 9)
    await index_all(desk)
    assert await below(desk) == first_id(TODAY)


async def test_half_an_index_is_made_anew(desk: Desk, beside: Any) -> None:
    """What a build leaves behind that was given up."""
    name = f"attempt_day_{TODAY - 1}_by_tenant"
    await beside.execute(
        f'create index {name} on attempt_day_{TODAY - 1} (tenant, delivery) where "end" is not null'
    )
    await beside.execute(f"update pg_index set indisvalid = false where indexrelid = '{name}'::regclass")
    await index_all(desk)
    assert await below(desk) == first_id(TODAY)


async def test_an_index_waits_while_somebody_reads(desk: Desk, beside: Any) -> None:
    """It waits for those that began before it, and nobody waits for it."""
    async with beside.transaction(isolation="repeatable_read"):
        await beside.fetchval("select count(*) from attempt")
        indexing = asyncio.create_task(index_all(desk))
        held = await desk.hold_one(now=NOW - DAY_MS)
        await desk.record(desk.make.delivered(held), now=NOW)
        assert not indexing.done()
    await indexing
    assert await below(desk) == first_id(TODAY)


async def test_half_an_index_goes_without_anybody_waiting(desk: Desk, beside: Any) -> None:
    """A dump outlasts a build, and still reads when the next round comes: results of that day are recorded meanwhile."""
    name = f"attempt_day_{TODAY - 1}_by_tenant"
    await index_all(desk)
    await beside.execute(f"update pg_index set indisvalid = false where indexrelid = '{name}'::regclass")
    held = await desk.hold_one(now=NOW - DAY_MS)
    async with beside.transaction(isolation="repeatable_read"):
        await beside.fetchval("select count(*) from attempt")
        indexing = asyncio.create_task(index_all(desk))
        while not await beside.fetchval("select exists (select from pg_locks where not granted)"):
            pass  # the question itself lets the build go on
        async with asyncio.timeout(3.0):
            await desk.record(desk.make.delivered(held), now=NOW)
        assert not indexing.done()
    await indexing
    assert await below(desk) == first_id(TODAY)


@pytest.mark.parametrize(
    "where", [{"tenant": "rare"}, {"type": "rare"}, {"state": "dead"}, {"outcome": "refused"}, {"receipt": "rejected"}, {"subject": "rare"}]
)  # fmt: skip
@pytest.mark.parametrize("is_large", [True, False], ids=["large", "small"])
async def test_a_rare_match_is_on_the_first_page_once_its_day_is_indexed_or_where_what_is_not_is_small(
    desk: Desk, beside: Any, where: dict[str, Any], is_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_large:
        monkeypatch.setattr(indexing, "WALKED_BYTES", 0)
        monkeypatch.setattr(indexing, "LOOKS_MORE", LOOKS_MAX)
    event = {"tenant": "rare", "type": "rare", "subject": "rare"}
    rare = await desk.finish_one("dead", now=NOW - 2 * DAY_MS, event=event)
    said = Said(rare.id, rare.event, word("rejected", NOW))
    await desk.ledger.apply_receipts(desk.endpoint, [said], tenant="rare", now=NOW)
    await make_day(beside, TODAY - 2 + 1000, padding=0)  # some day far ahead: never indexed here
    await beside.execute(
        """
        insert into attempt (delivery, seq, lane, started_at, "end", finished_at, tenant, endpoint, type, event, headers, body)
        select decode(lpad(to_hex($1::bigint + n), 12, '0') || repeat('70', 10), 'hex'), 127, 0, $1, 'delivered', $1,
          'common', '\\x01', 't', '\\x02', '', ''
        from generate_series(1, $2::int) n
        """,
        NOW - DAY_MS,
        LOOKS_MAX + 10,
    )
    wanted = DeliveryFilter(**where)
    if is_large and "subject" not in where:  # events are few here: all of them are looked at
        assert (await desk.ledger.deliveries(wanted, limit=50, after=None)).data == []
    if is_large or "receipt" in where:
        await index_all(desk)
    page = await desk.ledger.deliveries(wanted, limit=50, after=None)
    assert ([one.id for one in page.data], page.next) == ([rare.id], None)


async def test_a_key_that_is_forgotten_leads_to_its_event_once_its_day_is_indexed(
    desk: Desk, beside: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "WALKED_BYTES", 0)
    monkeypatch.setattr(indexing, "LOOKS_MORE", 3)
    (keyed,) = await desk.publish(desk.endpoint, now=NOW - 2 * DAY_MS, key="k")
    for _ in range(9):
        await desk.publish(desk.endpoint, now=NOW - DAY_MS)
    where = EventFilter(tenant=TENANT, idempotency_key="k")
    assert [one.id for one in (await desk.ledger.events(where, limit=5, after=None)).data] == [keyed.event]
    await beside.execute("delete from idempotency")
    page = await desk.ledger.events(where, limit=5, after=None)
    assert page.data == [] and page.next is not None
    await index_all(desk)
    page = await desk.ledger.events(where, limit=5, after=None)
    assert ([one.id for one in page.data], page.next) == ([keyed.event], None)


@pytest.mark.slow
async def test_lists_say_the_same_with_indexes_and_without(desk: Desk) -> None:
    other = await desk.new_endpoint()
    for place in range(24):
        at = NOW - 2 * DAY_MS + place * 3 * HOUR_MS
        endpoint = (desk.endpoint, other)[place % 2]
        kind = place % 4
        if kind == 3:
            await desk.publish_one(endpoint, now=at, event={"tenant": "globex"})
        else:
            tenant = {"tenant": ("acme", "globex")[place % 3 == 0]}
            held = await desk.publish_one(endpoint, now=at, held=True, event=tenant)
            await desk.record(desk.make.dead(held) if kind else desk.make.delivered(held), now=at)
    filters = [
        DeliveryFilter(**who, **what)
        for who in ({"tenant": "acme"}, {"tenant": "globex"}, {"endpoint": other}, {"endpoint": other, "tenant": "acme"}, {})
        for what in (
            {}, {"state": "dead"}, {"state": "scheduled"}, {"outcome": "delivered"}, {"since": NOW - DAY_MS},
            {"until": NOW - DAY_MS}, {"since": NOW - DAY_MS, "until": NOW}, {"since": NOW},
        )
    ]  # fmt: skip

    async def answers() -> list[Any]:
        return [
            await desk.everything(desk.ledger.deliveries, where, limit=limit)
            for where in filters
            for limit in (1, 3, 200)
        ]

    before = await answers()
    await index_all(desk)
    assert await answers() == before
