"""Handing over to a broker: which rows are marked, by whom, and what takes a mark off again."""

from __future__ import annotations

import pytest

from .adapters import Adapter
from .desk import ALL, Desk
from .making import NOW

FIRST, RETRY = 0, 1


@pytest.fixture(autouse=True)
def _hands_over(adapter: Adapter) -> None:
    if not adapter.hands_over:
        pytest.skip("one process alone hands nothing over")


@pytest.fixture
def office(desk: Desk, runner) -> Desk:
    runner.run(desk.ledger.prepare_handing())
    return desk


async def test_a_ledger_has_a_name_that_stays(office: Desk) -> None:
    name = await office.ledger.identity()
    assert name == await office.ledger.identity()
    assert name == "" or (len(name) == 8 and name.isalnum()), (
        "only the memory ledger, of which each process has one, has none"
    )


async def over(
    desk: Desk, *, lane: int = FIRST, limit: int = ALL, due_by: int = NOW, node=None
) -> list[bytes] | None:
    return await desk.ledger.hand_over(lane, node=node or desk.node, limit=limit, due_by=due_by, now=due_by)


async def watermark(desk: Desk, *, lane: int = FIRST) -> int:
    """End the epoch and let its watermark come."""
    generation = await desk.ledger.end_epoch(lane, node=desk.node, now=NOW)
    await desk.ledger.record_watermark(lane, generation, node=desk.node, now=NOW)
    return generation


async def test_ready_rows_are_handed_over_once_the_earliest_due_first(office: Desk) -> None:
    due = {offset: await office.publish_one(due_at=NOW - offset) for offset in (5, 40, 1)}
    await office.publish_one(due_at=NOW + 1)
    await office.publish_one(lane=RETRY)
    await office.publish_one(held=True)
    await office.publish_one(parked="paused")
    assert await over(office, limit=2) == [due[40].id, due[5].id]
    assert await over(office) == [due[1].id]
    assert await over(office) == []


async def test_a_mark_leaves_the_row_free_for_a_claim(office: Desk) -> None:
    one, other = await office.publish_one(), await office.publish_one()
    await over(office)
    (claimed,) = (await office.ledger.claim_ids([one.id], node=office.node, now=NOW)).rows
    assert claimed.id == one.id
    assert [row.id for row in await office.claim()] == [other.id]


async def test_a_row_that_is_born_marked_is_not_handed_over(office: Desk) -> None:
    marks = await office.ledger.lane_marks(FIRST)
    await office.publish_one(handed=marks.epoch)
    plain = await office.publish_one()
    assert await over(office) == [plain.id]


async def test_a_born_mark_is_written_with_every_kind_of_item(office: Desk) -> None:
    await office.publish_one(handed=1, key="k1")
    await office.publish_one(handed=1, given=True)
    assert await over(office) == []


async def test_a_lease_takes_the_mark_off(office: Desk) -> None:
    rows = [await office.publish_one() for _ in range(4)]
    ids = [row.id for row in rows]
    await over(office)
    first, second = (await office.ledger.claim_ids(ids[:2], node=office.node, now=NOW)).rows
    third, fourth = await office.claim()
    await office.ledger.release([first, third], node=office.node, now=NOW)
    await office.ledger.free([second.id], node=office.node, now=NOW)
    await office.record(office.make.failed(fourth, due_at=NOW + 5))
    assert await over(office) == [first.id, second.id, third.id]
    assert await over(office, lane=RETRY, due_by=NOW + 5) == [fourth.id]


async def test_marks_older_than_the_last_watermark_are_lost_and_handed_over_again(office: Desk) -> None:
    old = await office.publish_one()
    await over(office)
    await watermark(office)
    assert await over(office) == [], "one whole generation of grace"
    young = await office.publish_one()
    await over(office)
    await watermark(office)
    assert await over(office) == [old.id]
    await watermark(office)
    assert await over(office) == [young.id]


async def test_without_its_watermark_no_mark_is_lost(office: Desk) -> None:
    await office.publish_one()
    await over(office)
    for _ in range(10):
        await office.ledger.end_epoch(FIRST, node=office.node, now=NOW)
    assert await over(office) == []


async def test_a_later_watermark_stands_for_those_before_it(office: Desk) -> None:
    row = await office.publish_one()
    await over(office)
    await office.ledger.end_epoch(FIRST, node=office.node, now=NOW)
    await watermark(office)
    assert await over(office) == [row.id]


async def test_watermarks_that_were_never_sent_or_come_again_change_nothing(office: Desk) -> None:
    await office.publish_one()
    await over(office)
    await watermark(office)
    passed = await office.ledger.lane_marks(FIRST)
    for generation in (0, passed.passed, passed.epoch, passed.epoch + 100):
        await office.ledger.record_watermark(FIRST, generation, node=office.node, now=NOW)
    assert await office.ledger.lane_marks(FIRST) == passed


async def test_lanes_have_generations_of_their_own(office: Desk) -> None:
    await over(office)
    await watermark(office)
    marks = await office.ledger.lane_marks(RETRY)
    assert (marks.epoch, marks.passed) == (1, 0)


async def test_one_node_sweeps_until_it_resigns_or_is_evicted(office: Desk) -> None:
    second, third = await office.new_node(), await office.new_node()
    row = await office.publish_one()
    assert await over(office, limit=0) == []
    assert await over(office, node=second) is None
    assert await office.ledger.end_epoch(FIRST, node=second, now=NOW) is None
    await office.ledger.resign(FIRST, node=second, now=NOW)
    assert await over(office, node=second) is None, "only the sweeper can resign"
    await office.ledger.resign(FIRST, node=office.node, now=NOW)
    assert await over(office, node=second) == [row.id]
    assert await over(office, node=third) is None
    await office.ledger.evict([second], now=NOW)
    assert await over(office, node=third) == []
    assert await over(office, lane=RETRY) == [], "lanes have sweepers of their own"


async def test_what_a_dead_node_held_is_handed_over(office: Desk) -> None:
    other = await office.new_node()
    rows = [await office.publish_one() for _ in range(3)]
    await over(office)
    await office.ledger.claim_ids([row.id for row in rows], node=other, now=NOW)
    assert await over(office) == []
    await office.ledger.evict([other], now=NOW)
    assert sorted(await over(office)) == sorted(row.id for row in rows)
