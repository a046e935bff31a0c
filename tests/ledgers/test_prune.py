"""Retention: what is old goes, what is needed stays, and every call is bounded."""

from __future__ import annotations

from surehook.core.instants import DAY_MS
from surehook.ports.reading import DeliveryFilter, EventFilter, NoticeFilter

from .desk import ALL, Desk
from .making import NOW

OLD = NOW - 40 * DAY_MS
MONTH_AGO = NOW - 30 * DAY_MS


async def _prune(
    desk: Desk, *, events_before: int = MONTH_AGO, bodies_before: int = 0, limit: int = ALL
) -> int:
    """Prune until nothing is left to remove; how much went."""
    removed = 0
    for _ in range(ALL):
        once = await desk.ledger.prune(
            events_before=events_before, bodies_before=bodies_before, limit=limit, now=NOW
        )
        assert 0 <= once <= limit
        removed += once
        if not once:
            return removed
    raise AssertionError("pruning without end")


async def test_an_old_finished_event_goes_with_its_whole_story(desk: Desk) -> None:
    done = await desk.finish_one(now=OLD)
    assert await _prune(desk) > 0
    assert await desk.ledger.event(done.event) is None
    assert await desk.ledger.delivery(done.id) is None
    assert await desk.ledger.attempts(done.id) == []
    assert await desk.everything(desk.ledger.deliveries, DeliveryFilter()) == []


async def test_what_is_younger_stays(desk: Desk) -> None:
    edge = await desk.finish_one(now=MONTH_AGO)
    unmatched = desk.make.incoming(at=MONTH_AGO)
    await desk.accept(unmatched, now=MONTH_AGO)
    assert await _prune(desk) == 0
    assert await desk.state(edge) == "delivered"
    assert len(await desk.everything(desk.ledger.events, EventFilter())) == 2


async def test_an_old_event_without_deliveries_goes(desk: Desk) -> None:
    item = desk.make.incoming(at=OLD)
    await desk.accept(item, now=OLD)
    await _prune(desk)
    assert await desk.ledger.event(item.event.id) is None


async def test_an_event_stays_while_a_delivery_needs_it(desk: Desk) -> None:
    for fields in ({}, {"held": True}, {"parked": "paused"}):
        await desk.publish_one(now=OLD, **fields)
    other = await desk.new_endpoint()
    first, second = await desk.publish(desk.endpoint, other, now=OLD, held=True)
    await desk.record(desk.make.delivered(first), now=OLD)
    await _prune(desk, bodies_before=MONTH_AGO)
    assert len(await desk.everything(desk.ledger.events, EventFilter())) == 4
    (row, _) = await desk.row(second)
    assert row.body == second.body


async def test_a_dead_letter_keeps_its_event_and_its_story(desk: Desk) -> None:
    dead = await desk.finish_one("dead", now=OLD)
    await _prune(desk, bodies_before=MONTH_AGO)
    assert (await desk.ledger.event(dead.event)).body == dead.body
    assert await desk.state(dead) == "dead"
    assert await desk.kinds(dead) == [("attempt", 1)]
    assert [one.id for one in await desk.everything(desk.ledger.dead_letters, DeliveryFilter())] == [dead.id]


async def test_a_dismissed_dead_letter_goes(desk: Desk) -> None:
    dead = await desk.finish_one("dead", now=OLD)
    assert await desk.ledger.dismiss(dead.id, note="known", now=OLD)
    await _prune(desk)
    assert await desk.ledger.event(dead.event) is None
    assert await desk.state(dead) is None


async def test_a_replayed_dead_letter_goes_once_its_replay_is_finished(desk: Desk) -> None:
    dead = await desk.finish_one("dead", now=OLD)
    again = desk.make.delivery(await desk.ledger.event(dead.event), desk.endpoint, replay_of=dead.id)
    await desk.ledger.resend([dead.id], [again], now=OLD)
    await _prune(desk)
    assert (await desk.ledger.event(dead.event)).body == dead.body
    (claimed,) = await desk.claim()
    await desk.record(desk.make.delivered(claimed), now=OLD)
    await _prune(desk)
    assert await desk.ledger.event(dead.event) is None


async def test_bodies_may_go_before_their_events(desk: Desk) -> None:
    done = await desk.finish_one(now=OLD)
    needed = await desk.publish_one(now=OLD)
    young = await desk.finish_one(now=NOW)
    removed = await _prune(desk, events_before=0, bodies_before=MONTH_AGO)
    assert removed > 0
    event = await desk.ledger.event(done.event)
    assert (event.body, event.digest, event.subject) == (b"", b"\x01" * 32, "doc_1")
    assert (await desk.ledger.event(needed.event)).body == needed.body
    assert (await desk.ledger.event(young.event)).body == young.body
    assert await desk.state(done) == "delivered"


async def test_each_call_removes_a_bounded_number_and_the_oldest_first(desk: Desk) -> None:
    items = [desk.make.incoming(at=OLD + place) for place in range(6)]
    for item in items:
        await desk.accept(item, now=item.event.accepted_at)
    assert await desk.ledger.prune(events_before=MONTH_AGO, bodies_before=0, limit=4, now=NOW) == 4
    left = await desk.everything(desk.ledger.events, EventFilter())
    assert [event.id for event in left] == [items[5].event.id, items[4].event.id]


async def test_needed_events_do_not_stand_in_the_way_of_others(desk: Desk) -> None:
    for place in range(5):
        await desk.publish_one(now=OLD + place)
    done = await desk.finish_one(now=OLD + 9)
    await _prune(desk, limit=2)
    assert await desk.ledger.event(done.event) is None
    assert len(await desk.everything(desk.ledger.events, EventFilter())) == 5


async def test_old_notices_go(desk: Desk) -> None:
    old, young = desk.make.notice(at=OLD), desk.make.notice(at=NOW)
    await desk.record(notices=[old, young])
    await _prune(desk)
    assert await desk.everything(desk.ledger.notices, NoticeFilter()) == [young]


async def test_expired_keys_go_and_live_ones_stay(desk: Desk) -> None:
    expired = desk.make.incoming(key="old", at=NOW - DAY_MS)
    live = desk.make.incoming(key="live", at=NOW - DAY_MS + 1)
    await desk.accept(expired, now=NOW - DAY_MS)
    await desk.accept(live, now=NOW - DAY_MS + 1)
    assert await _prune(desk, events_before=0) == 1
    (taken,) = await desk.accept(desk.make.incoming(key="live"))
    assert not taken.fresh


async def test_a_key_that_was_used_again_lives_on(desk: Desk) -> None:
    """What its first life left behind does not end the second."""
    await desk.accept(desk.make.incoming(key="k", at=OLD), now=OLD)
    again = desk.make.incoming(key="k")
    await desk.accept(again)
    await _prune(desk, events_before=0)
    (taken,) = await desk.accept(desk.make.incoming(key="k"))
    assert (taken.event, taken.fresh) == (again.event.id, False)


async def test_a_repeat_is_answered_by_its_key_after_the_event_is_gone(desk: Desk) -> None:
    """Retention may be shorter than a key's day; the answer stays the same."""
    first = desk.make.incoming(desk.endpoint, key="k", held=True, at=NOW - DAY_MS // 2)
    await desk.accept(first, now=NOW - DAY_MS // 2)
    await desk.record(desk.make.delivered(first.deliveries[0]), now=NOW - DAY_MS // 2)
    await _prune(desk, events_before=NOW)
    assert await desk.ledger.event(first.event.id) is None
    (taken,) = await desk.accept(desk.make.incoming(key="k"))
    assert (taken.event, taken.fan_out, taken.fresh, taken.problem) == (first.event.id, 1, False, None)
