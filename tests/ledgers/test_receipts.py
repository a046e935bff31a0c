"""Receipts: what receivers said is joined and shown, and an end that does not come is told of once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import structs

from surehook.core.instants import DAY_MS
from surehook.core.model import Delivery
from surehook.core.receipt import STAGES, Wanted, Word, word
from surehook.core.receipt_message import Said
from surehook.delivery.loading import read_all
from surehook.ports.reading import DeliveryFilter
from surehook.ports.receipts import PendingReceipt, ReceiptResult

from .desk import ALL, Desk
from .making import NOW, TENANT

T = NOW + 60_000  # when an end is missed


async def _hear(desk: Desk, *said: Said, endpoint: bytes | None = None, now: int = NOW) -> ReceiptResult:
    return await desk.ledger.apply_receipts(endpoint or desk.endpoint, said, tenant=TENANT, now=now)


def _of(delivery: Delivery, told: Word) -> Said:
    return Said(delivery.id, delivery.event, told)


async def _shown(desk: Desk, delivery: Delivery) -> Word | None:
    return (await desk.ledger.delivery(delivery.id)).receipt


async def _deliver(desk: Desk, *, finalize_by: int | None = T, **fields: Any) -> Delivery:
    delivery = await desk.hold_one(**fields)
    await _record(desk, delivery, finalize_by=finalize_by)
    return delivery


async def _record(desk: Desk, delivery: Delivery, *, finalize_by: int | None = T) -> None:
    await desk.record(structs.replace(desk.make.delivered(delivery), finalize_by=finalize_by))


async def _late(desk: Desk, now: int = T) -> list[bytes]:
    """Deliveries whose end is missed."""
    return [one.delivery for one in await desk.ledger.unfinalized(now=now, limit=ALL)]


async def test_what_an_endpoint_wants_of_receipts_is_kept(desk: Desk) -> None:
    for wanted in (Wanted(), Wanted(60), None):
        made = await desk.new_endpoint(receipts=wanted)
        assert (await desk.ledger.endpoint(made)).receipts == wanted
        found = {one.id: one.receipts for one in (await read_all(desk.ledger)).endpoints}
        assert found[made] == wanted
        changed = await desk.ledger.change_endpoint(made, {"receipts": Wanted(7)}, now=NOW)
        assert changed.receipts == Wanted(7)


async def test_words_are_joined_and_shown_on_the_delivery(desk: Desk) -> None:
    done = await desk.finish_one()
    assert await _shown(desk, done) is None
    heard = await _hear(desk, _of(done, word("accepted", 5)))
    assert (heard.unknown, heard.reached) == ([], ["accepted"])
    heard = await _hear(desk, _of(done, word("rejected", 7, accepted_at=5, code="no", note="späť")))
    assert heard.reached == ["rejected"]
    assert await _shown(desk, done) == Word(accepted_at=5, rejected_at=7, code="no", note="späť")
    (listed,) = (await desk.ledger.deliveries(DeliveryFilter(), limit=5, after=None)).data
    assert listed.receipt == await _shown(desk, done)


@pytest.mark.parametrize("now_said", STAGES)
@pytest.mark.parametrize("before", STAGES)
async def test_an_earlier_stage_never_lowers_and_repeats_say_nothing_new(
    desk: Desk, before: Any, now_said: Any
) -> None:
    done = await desk.finish_one()
    await _hear(desk, _of(done, word(before, 5)))
    is_higher = STAGES.index(now_said) > STAGES.index(before)
    heard = await _hear(desk, _of(done, word(now_said, 6)))
    assert heard.reached == ([now_said] if is_higher else [])
    shown = await _shown(desk, done)
    assert shown.stage == (now_said if is_higher else before)
    assert (await _hear(desk, _of(done, word(now_said, 6)))).reached == []
    assert await _shown(desk, done) == shown


async def test_one_message_may_speak_of_many_and_twice_of_one(desk: Desk) -> None:
    several = [await desk.finish_one() for _ in range(3)]
    said = [_of(one, word("processed", 4)) for one in several] + [_of(several[1], word("finalized", 9))]
    heard = await _hear(desk, *reversed(said), *said)
    assert sorted(heard.reached) == ["finalized", "processed", "processed"]
    assert [(await _shown(desk, one)).stage for one in several] == ["processed", "finalized", "processed"]


async def test_words_that_come_at_the_same_moment_are_all_joined(desk: Desk) -> None:
    """Through several connections, in opposite orders, before anything was known."""
    for _ in range(8):  # whether two meet is chance
        several = [await desk.finish_one() for _ in range(2)]
        messages = [
            [_of(one, word(stage, at)) for one in order]
            for at, stage in enumerate(STAGES, 1)
            for order in (several, several[::-1])
        ]
        heard = await asyncio.gather(*(_hear(desk, *said) for said in messages))
        for one in several:
            told = Word(accepted_at=1, processed_at=2, rejected_at=3, finalized_at=4)
            assert await _shown(desk, one) == told
        reached = [stage for one in heard for stage in one.reached]
        assert reached.count("finalized") == len(several)


async def test_what_the_endpoint_never_had_is_unknown(desk: Desk) -> None:
    other = await desk.new_endpoint()
    done, open_, theirs = await desk.finish_one(), await desk.publish_one(), await desk.publish_one(other)
    told = word("finalized", 9)
    strange = [
        _of(theirs, told), Said(desk.make.id(), done.event, told), Said(done.id, open_.event, told),
    ]  # fmt: skip
    heard = await _hear(desk, *strange, _of(open_, told), _of(done, told))
    assert heard.unknown == [one.delivery for one in strange]
    assert heard.reached == ["finalized", "finalized"]
    assert await _shown(desk, theirs) is None
    assert (await _hear(desk, *strange)).reached == []


async def test_a_replay_shows_what_was_said_of_its_event(desk: Desk) -> None:
    done = await desk.finish_one()
    again = desk.make.delivery(await desk.ledger.event(done.event), desk.endpoint, replay_of=done.id)
    assert await desk.ledger.resend([done.id], [again], now=NOW) == [done.id]
    await _hear(desk, _of(done, word("finalized", 9)))
    assert await _shown(desk, again) == await _shown(desk, done) == word("finalized", 9)


async def test_deliveries_are_found_by_what_was_said(desk: Desk) -> None:
    finished, open_, silent = await desk.finish_one(), await desk.publish_one(), await desk.finish_one()
    await _hear(desk, _of(finished, word("finalized", 9)), _of(open_, word("processed", 9)))

    async def found(stage: Any, **where: Any) -> list[bytes]:
        listed = await desk.everything(desk.ledger.deliveries, DeliveryFilter(receipt=stage, **where))
        return [one.id for one in listed]

    assert [await found(stage) for stage in STAGES] == [[], [open_.id], [], [finished.id]]
    assert await found("finalized", state="delivered", endpoint=desk.endpoint) == [finished.id]
    assert await found(None) == [silent.id, open_.id, finished.id]


# -- the wait for an end ----------------------------------------------------------------------------------


async def test_a_wait_begins_with_the_delivery_and_is_over_at_its_time(desk: Desk) -> None:
    late, later = await _deliver(desk), await _deliver(desk, finalize_by=T + 1)
    await _deliver(desk, finalize_by=None)
    assert await _late(desk, T - 1) == []
    (found,) = await desk.ledger.unfinalized(now=T, limit=ALL)
    assert found == PendingReceipt(late.event, desk.endpoint, TENANT, late.id, T)
    assert await _late(desk, T + 1) == [late.id, later.id]
    assert [one.delivery for one in await desk.ledger.unfinalized(now=T + 1, limit=1)] == [late.id]
    assert await _shown(desk, late) is None


@pytest.mark.parametrize("is_early", [False, True])
@pytest.mark.parametrize("stage", STAGES)
async def test_an_end_ends_the_wait_whenever_it_is_told(desk: Desk, stage: Any, is_early: bool) -> None:
    """Also before the sender has recorded that the event was delivered."""
    delivery = await desk.hold_one()
    if is_early:
        await _hear(desk, _of(delivery, word(stage, 9)))
    await _record(desk, delivery)
    if not is_early:
        await _hear(desk, _of(delivery, word(stage, 9)))
    assert await _late(desk) == ([] if stage in ("rejected", "finalized") else [delivery.id])
    assert (await _shown(desk, delivery)).stage == stage


@pytest.mark.parametrize("stage", STAGES)
async def test_a_later_delivery_of_the_event_waits_unless_it_was_final(desk: Desk, stage: Any) -> None:
    first = await _deliver(desk)
    await _hear(desk, _of(first, word(stage, 9)))
    again = desk.make.delivery(
        await desk.ledger.event(first.event), desk.endpoint, held=True, replay_of=first.id
    )
    await desk.ledger.resend([first.id], [again], now=NOW)
    (again,) = (await desk.ledger.claim_ids([again.id], node=desk.node, now=NOW)).rows
    await _record(desk, again, finalize_by=T + 5)
    assert await _late(desk, T + 5) == ([] if stage == "finalized" else [again.id])
    assert (await _shown(desk, again)).stage == stage


async def test_a_missed_end_is_told_of_once(desk: Desk) -> None:
    late = await _deliver(desk)
    found = await desk.ledger.unfinalized(now=T, limit=ALL)
    notices = [desk.make.notice("delivery.unfinalized", delivery=late.id)]
    assert await desk.ledger.mark_unfinalized(found, notices, now=T) == [late.id]
    again = [desk.make.notice("delivery.unfinalized", delivery=late.id)]
    assert await desk.ledger.mark_unfinalized(found, again, now=T) == []
    assert await desk.notice_kinds() == ["delivery.unfinalized"]
    assert await _late(desk) == []
    await _hear(desk, _of(late, word("processed", 9)))
    assert await _late(desk) == []


async def test_an_end_that_comes_before_the_mark_takes_the_notice_back(desk: Desk) -> None:
    late, told = await _deliver(desk), await _deliver(desk)
    found = await desk.ledger.unfinalized(now=T, limit=ALL)
    await _hear(desk, _of(told, word("finalized", 9)))
    notices = [desk.make.notice("delivery.unfinalized", delivery=one.id) for one in (late, told)]
    assert await desk.ledger.mark_unfinalized(found, notices, now=T) == [late.id]
    assert await desk.notice_kinds() == ["delivery.unfinalized"]
    assert await desk.ledger.mark_unfinalized([], [], now=T) == []


async def test_a_wait_does_not_begin_for_what_is_not_in_hand(desk: Desk) -> None:
    held = await desk.hold_one()
    other = await desk.new_node()
    settled = structs.replace(desk.make.delivered(held), finalize_by=T)
    assert (await desk.record(settled, node=other)).lost == [held.id]
    assert await _late(desk) == []


async def test_old_receipts_go_and_young_ones_stay(desk: Desk) -> None:
    old, month_ago = NOW - 40 * DAY_MS, NOW - 30 * DAY_MS
    gone, heard_late = [await desk.finish_one(now=old) for _ in range(2)]
    waiting = await desk.hold_one(now=old)
    await desk.record(structs.replace(desk.make.delivered(waiting), finalize_by=T), now=old)
    await _hear(desk, _of(gone, word("finalized", 9)), now=old)
    await _hear(desk, _of(heard_late, word("finalized", 9)), now=NOW)
    removed = 0
    while once := await desk.ledger.prune(events_before=month_ago, bodies_before=0, limit=1, now=NOW):
        removed += once
    assert removed == 3 * 2 + 2  # three stories with their events, and two receipts
    assert await _late(desk) == []
