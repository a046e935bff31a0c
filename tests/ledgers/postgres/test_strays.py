"""What becomes ready behind where claims begin is claimed at once, however deep it lies."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest

from surehook.core.model import FIRST, Delivery
from surehook.ledgers.late import LATE_MS
from surehook.ledgers.postgres import stray_notes
from surehook.ledgers.postgres.ledger import PostgresLedger
from surehook.ledgers.postgres.lookback import MOST_S
from surehook.ports.ledger import Skip
from tests.ledgers.desk import ALL, Desk
from tests.ledgers.making import NOW
from tests.ledgers.postgres.beside import Ticks, beside, opened

LONG_AGO = NOW - 60_000  # behind every mark
BACKLOG = 100_000  # rows of another tenant that are due: a pass goes over them for seconds
FILL = f"""insert into delivery (id, attempt, lane, due_at, endpoint, event, tenant, type, born_at, unknown)
select decode('00' || lpad(to_hex(n), 30, '0'), 'hex'), 1, 0, {NOW} - 3600000 + n::bigint * 3600000 / {BACKLOG}, '\\x01', '\\x02',
  'crowd', 'aged', 0, false
from generate_series(1, {BACKLOG}) n"""
WITHOUT_CROWD = Skip(tenants=("crowd",))


@pytest.fixture
def others_ticks() -> Ticks:
    return Ticks()


@pytest.fixture
def book(place: str, runner: asyncio.Runner, ticks: Ticks) -> Iterator[PostgresLedger]:
    """Looks back once, at the beginning, and then not again in these tests."""
    with opened(place, runner, clock=ticks) as ledger:
        yield ledger


@pytest.fixture
def other(place: str, desk: Desk, runner: asyncio.Runner, others_ticks: Ticks) -> Iterator[Desk]:
    with beside(desk, place, runner, clock=others_ticks) as second:
        yield second


async def look_back_no_more(desk: Desk, ticks: Ticks) -> None:
    """As when the last look was far: the next one is fifteen seconds away."""
    assert await desk.claim() == []
    desk.ledger._marks._look_backs[FIRST].ended(10**9)
    ticks.now += MOST_S / 2
    assert await desk.claim() == []


async def notes(beside: Any) -> int:
    return await beside.fetchval("select count(*) from stray")


async def evicted(desk: Desk, other: Desk) -> list[Delivery]:
    """Deliveries of a node that is dead and evicted by somebody else."""
    dead = await other.new_node()
    held = [await other.publish_one(at=LONG_AGO, now=LONG_AGO, held=True, node=dead) for _ in range(3)]
    await other.ledger.evict([dead], now=NOW)
    return held


async def freed(desk: Desk, other: Desk) -> list[Delivery]:
    held = [await other.publish_one(at=LONG_AGO, now=LONG_AGO, held=True) for _ in range(3)]
    await other.ledger.free([one.id for one in held], node=other.node, now=NOW)
    return held


async def handed_back(desk: Desk, other: Desk) -> list[Delivery]:
    held = [await other.publish_one(at=LONG_AGO, now=LONG_AGO, held=True) for _ in range(3)]
    await other.ledger.release(held, node=other.node, now=NOW)
    return held


async def told(desk: Desk) -> None:
    """What this process has to tell is told."""
    assert desk.ledger._late_rows._task is not None
    await desk.ledger._late_rows._task


ALL_WAYS = pytest.mark.parametrize("make_ready", [evicted, freed, handed_back], ids=lambda way: way.__name__)


# -- claims ------------------------------------------------------------------------------------------------


@ALL_WAYS
async def test_what_another_node_makes_ready_is_claimed_at_the_next_poll_without_a_look_back(
    make_ready: Any, desk: Desk, other: Desk, ticks: Ticks, beside: Any
) -> None:
    await look_back_no_more(desk, ticks)
    made = await make_ready(desk, other)
    assert [row.id for row in await desk.claim()] == [one.id for one in made]
    assert await desk.claim() == []
    # By this one at the latest: a transaction of anybody's on the server may have ended beside the first.
    assert await notes(beside) == 0


async def test_a_transaction_that_ends_meanwhile_hides_no_note_from_the_claim_that_sees_it_ended(
    desk: Desk, other: Desk, ticks: Ticks, beside: Any
) -> None:
    """What it brought is looked for from the beginning by the next claim; notes of the time since are this one's."""
    await beside.execute("begin; select txid_current()")
    await look_back_no_more(desk, ticks)
    made = await evicted(desk, other)
    await beside.execute("commit")
    assert [row.id for row in await desk.claim()] == [one.id for one in made]


@ALL_WAYS
async def test_it_is_claimed_out_of_the_depth_of_anothers_backlog(
    make_ready: Any, desk: Desk, other: Desk, beside: Any
) -> None:
    await beside.execute(FILL)

    async def claim() -> list[Delivery]:
        return await desk.ledger.claim_others(
            FIRST, node=desk.node, limit=ALL, due_by=NOW, now=NOW, skip=WITHOUT_CROWD
        )

    assert await claim() == []
    made = await make_ready(desk, other)
    found = [*await claim(), *await claim()]
    assert sorted(row.id for row in found) == sorted(one.id for one in made)
    assert await claim() == []
    assert await notes(beside) == 0


async def test_a_node_that_begins_beside_anothers_backlog_has_looked_at_all_of_it_after_one_call(
    desk: Desk, other: Desk, beside: Any
) -> None:
    """A hundred thousand rows in twenty looks: a million in two hundred, within two seconds."""
    await beside.execute(FILL)
    deep = await other.publish_one(at=LONG_AGO, now=LONG_AGO)
    await beside.execute("delete from stray")  # nobody tells of it
    (found,) = await desk.ledger.claim_others(
        FIRST, node=desk.node, limit=ALL, due_by=NOW, now=NOW, skip=WITHOUT_CROWD
    )
    assert found.id == deep.id


async def test_what_a_slow_commit_left_behind_is_told_of_by_the_one_who_wrote_it(
    desk: Desk, other: Desk, ticks: Ticks, others_ticks: Ticks, beside: Any
) -> None:
    await look_back_no_more(desk, ticks)
    await other.publish_one()
    assert await notes(beside) == 0, "it was quick"
    assert len(await desk.claim()) == 1
    others_ticks.slow = 6.0
    late = await other.publish_one(at=LONG_AGO, now=LONG_AGO)
    others_ticks.slow = 0.0
    await told(other)
    assert [row.id for row in await desk.claim()] == [late.id]


async def test_a_retry_whose_record_waited_is_told_of(
    desk: Desk, other: Desk, ticks: Ticks, others_ticks: Ticks, beside: Any
) -> None:
    await look_back_no_more(desk, ticks)
    held = await other.hold_one()
    others_ticks.slow = 6.0
    await other.record(other.make.failed(held, due_at=NOW + LATE_MS), now=NOW)
    others_ticks.slow = 0.0
    await told(other)
    assert await beside.fetchval("select rows[1] from stray") == held.id


async def test_a_note_that_is_committed_late_itself_is_seen(
    desk: Desk, other: Desk, ticks: Ticks, beside: Any
) -> None:
    """Claims go on from the oldest transaction that was under way, not from the newest note."""
    await look_back_no_more(desk, ticks)
    held = await other.publish_one(at=LONG_AGO, now=LONG_AGO, held=True)
    await beside.execute("begin; update delivery set holder = null")
    await beside.execute(
        "insert into stray (lane, told, tenant, endpoint, rows) values (0, pg_current_xact_id()::text::bigint, 'a', '', $1)",
        [held.id],
    )
    for _ in range(3):
        await (await handed_back_elsewhere(other))
        await desk.claim()
    await beside.execute("commit")
    assert [row.id for row in await desk.claim()] == [held.id]


async def handed_back_elsewhere(other: Desk) -> Any:
    """Another note, of a transaction that is through before."""
    endpoint = await other.new_endpoint()
    held = await other.publish_one(endpoint, at=LONG_AGO, now=LONG_AGO, held=True)
    return other.ledger.release([held], node=other.node, now=NOW)


async def test_an_ordinary_way_writes_no_note(desk: Desk, beside: Any) -> None:
    await desk.finish_one()
    await desk.publish_one()
    (row,) = await desk.claim()
    await desk.record(desk.make.failed(row, due_at=NOW + 60_000))
    assert desk.ledger._late_rows._task is None
    assert not await beside.fetchval("select is_called from stray_number_seq")


async def test_who_has_enough_is_passed_over_and_its_notes_stay(
    desk: Desk, other: Desk, ticks: Ticks, beside: Any
) -> None:
    await look_back_no_more(desk, ticks)
    await evicted(desk, other)
    greedy = Skip(endpoints=(desk.endpoint,))
    for _ in range(2):
        assert (
            await desk.ledger.claim_others(FIRST, node=desk.node, limit=ALL, due_by=NOW, now=NOW, skip=greedy)
            == []
        )
    assert await notes(beside) == 1
    assert len(await desk.claim()) == 3


async def test_rows_that_two_notes_name_come_once_and_with_their_bodies(
    desk: Desk, other: Desk, ticks: Ticks, beside: Any
) -> None:
    """Freed, leased past their note by another node, and handed back in another order: the first notes are still there."""
    await look_back_no_more(desk, ticks)
    endpoints = [await other.new_endpoint() for _ in range(3)]
    chance = random.Random(3)
    items = [
        other.make.incoming(*endpoints, held=True, at=LONG_AGO, due_at=LONG_AGO + chance.randrange(1_000))
        for _ in range(30)
    ]
    await other.accept(*items, now=LONG_AGO)
    held = sorted(delivery.id for item in items for delivery in item.deliveries)
    await other.ledger.free(held, node=other.node, now=NOW)
    for _ in range(3):
        some = chance.sample(held, 30)
        again = await other.ledger.claim_ids(some, node=other.node, now=NOW, size=1 << 30)
        await other.ledger.release(again.rows, node=other.node, now=NOW)

    taken = await desk.claim(limit=len(held))
    assert sorted(row.id for row in taken) == held
    assert all(row.body is not None for row in taken)
    await desk.claim()
    assert await notes(beside) == 0


# -- bounds ------------------------------------------------------------------------------------------------


async def test_many_rows_that_are_freed_at_once_are_few_notes_and_leave_none(
    desk: Desk, other: Desk, ticks: Ticks, beside: Any
) -> None:
    await look_back_no_more(desk, ticks)
    dead = await other.new_node()
    items = [other.make.incoming(other.endpoint, held=True, at=LONG_AGO) for _ in range(2_000)]
    await other.accept(*items, now=LONG_AGO, node=dead)
    await other.ledger.evict([dead], now=NOW)
    assert await notes(beside) == 32
    taken = [row.id for _ in range(5) for row in await desk.claim(limit=500)]
    assert len(taken) == len(set(taken)) == 2_000
    await desk.claim()
    assert await notes(beside) == 0


async def test_notes_are_bounded_for_each_tenant_and_for_all(
    desk: Desk, other: Desk, ticks: Ticks, beside: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stray_notes, "NOTES_TENANT", 2)
    monkeypatch.setattr(stray_notes, "NOTES_MOST", 3)
    endpoints = [await other.new_endpoint() for _ in range(4)]
    held = [await other.publish_one(endpoint, at=LONG_AGO, now=LONG_AGO, held=True) for endpoint in endpoints]
    for one in held:
        await other.ledger.release([one], node=other.node, now=NOW)
    assert await notes(beside) == 2
    await beside.execute(
        "insert into stray (lane, told, tenant, endpoint, rows) values (0, 0, 'b', '', '{}')"
    )
    await other.ledger.free([one.id for one in await other.claim(limit=1)], node=other.node, now=NOW)
    assert await notes(beside) <= 3
    assert len(await desk.claim()) + len(await other.claim()) == 4, "looking back finds what is beyond"


# -- sweeps ------------------------------------------------------------------------------------------------


@ALL_WAYS
async def test_what_another_node_makes_ready_is_swept_in_the_next_round(
    make_ready: Any, desk: Desk, other: Desk, ticks: Ticks, beside: Any
) -> None:
    await desk.ledger.prepare_handing()

    async def sweep(limit: int = 10) -> list[bytes]:
        return await desk.ledger.hand_over(FIRST, node=desk.node, limit=limit, due_by=NOW, now=NOW) or []

    assert await sweep() == []
    desk.ledger._sweeping._look_backs[FIRST].ended(10**9)
    assert await sweep() == []
    made = sorted(one.id for one in await make_ready(desk, other))
    assert sorted([*await sweep(2), *await sweep(2)]) == made
    assert await sweep() == [], "it is on its way"
    # Only now: a transaction of any database of the server that ended meanwhile leads a sweep to the rows, beside their notes.
    assert await notes(beside) == 0


async def test_rows_that_two_notes_name_are_swept_once(desk: Desk, other: Desk, beside: Any) -> None:
    await desk.ledger.prepare_handing()
    assert await desk.ledger.hand_over(FIRST, node=desk.node, limit=10, due_by=NOW, now=NOW) == []
    desk.ledger._sweeping._look_backs[FIRST].ended(10**9)
    made = await freed(desk, other)
    again = await other.ledger.claim_ids([one.id for one in made], node=other.node, now=NOW, size=1 << 30)
    await other.ledger.release(again.rows, node=other.node, now=NOW)
    assert await notes(beside) == 2
    swept = await desk.ledger.hand_over(FIRST, node=desk.node, limit=len(made), due_by=NOW, now=NOW)
    assert sorted(swept or []) == sorted(one.id for one in made)
