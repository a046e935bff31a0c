"""The lists and the stories: newest first, by keyset, each filter alone and together."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from surehook.core.receipt import word
from surehook.core.receipt_message import Said
from surehook.ledgers.common import deliveries, through_events
from surehook.ports.reading import DeliveryFilter, EventFilter, LaneCount, NoticeFilter

from .desk import Desk
from .making import NOW

LIMITS = (1, 2, 3, 200)


async def _events(desk: Desk) -> list[Any]:
    items = [
        desk.make.incoming(at=NOW, event={"type": "a"}),
        desk.make.incoming(at=NOW + 1, event={"type": "b", "subject": "doc_2"}),
        desk.make.incoming(at=NOW + 2, event={"type": "a", "tenant": "globex"}),
        desk.make.incoming(at=NOW + 3, event={"type": "a", "correlation_id": "c", "subject": None}),
    ]
    for item in items:
        await desk.accept(item, now=item.event.accepted_at)
    return [item.event for item in items]


EVENTS = [
    (EventFilter(), [3, 2, 1, 0]),
    (EventFilter(tenant="acme"), [3, 1, 0]),
    (EventFilter(type="a"), [3, 2, 0]),
    (EventFilter(subject="doc_1"), [2, 0]),
    (EventFilter(correlation_id="c"), [3]),
    (EventFilter(since=NOW + 1), [3, 2, 1]),
    (EventFilter(until=NOW + 1), [0]),
    (EventFilter(since=NOW + 1, until=NOW + 3), [2, 1]),
    (EventFilter(tenant="acme", type="a", since=NOW + 1), [3]),
    (EventFilter(tenant="nobody"), []),
]


@pytest.mark.parametrize(("where", "places"), EVENTS)
async def test_events_are_listed_newest_first(desk: Desk, where: EventFilter, places: list[int]) -> None:
    events = await _events(desk)
    for limit in LIMITS:
        listed = await desk.everything(desk.ledger.events, where, limit=limit)
        assert listed == [events[place] for place in places]


async def test_an_event_is_found_by_its_idempotency_key(desk: Desk) -> None:
    """A key is a tenant's, and other filters hold beside it."""
    made = [
        desk.make.incoming(key=key, at=NOW + at, event={"tenant": tenant})
        for at, (tenant, key) in enumerate(
            [("acme", "one"), ("globex", "one"), ("acme", "two"), ("acme", None)]
        )
    ]
    for item in made:
        await desk.accept(item, now=item.event.accepted_at)
    events = [item.event for item in made]
    table = [
        (EventFilter(tenant="acme", idempotency_key="one"), [events[0]]),
        (EventFilter(tenant="globex", idempotency_key="one"), [events[1]]),
        (EventFilter(tenant="acme", idempotency_key="two"), [events[2]]),
        (EventFilter(tenant="globex", idempotency_key="two"), []),
        (EventFilter(tenant="acme", idempotency_key="two", type="other"), []),
        (EventFilter(tenant="acme", idempotency_key="two", until=NOW), []),
    ]
    for where, found in table:
        for limit in LIMITS:
            assert await desk.everything(desk.ledger.events, where, limit=limit) == found


async def test_a_page_is_never_longer_than_asked_and_the_last_has_no_cursor(desk: Desk) -> None:
    await _events(desk)
    page = await desk.ledger.events(EventFilter(), limit=3, after=None)
    assert (len(page.data), page.next) == (3, page.data[-1].id)
    page = await desk.ledger.events(EventFilter(), limit=3, after=page.next)
    assert (len(page.data), page.next) == (1, None)


async def test_what_comes_in_during_a_walk_does_not_move_it(desk: Desk) -> None:
    events = await _events(desk)
    page = await desk.ledger.events(EventFilter(), limit=2, after=None)
    await desk.accept(desk.make.incoming(at=NOW + 9), now=NOW + 9)
    page = await desk.ledger.events(EventFilter(), limit=2, after=page.next)
    assert page.data == [events[1], events[0]]


async def test_nothing_is_found_where_nothing_is(desk: Desk) -> None:
    assert await desk.ledger.event(desk.make.id()) is None
    assert await desk.ledger.delivery(desk.make.id()) is None
    assert await desk.ledger.open_delivery(desk.make.id()) is None
    assert await desk.ledger.attempts(desk.make.id()) == []
    page = await desk.ledger.deliveries(DeliveryFilter(), limit=5, after=None)
    assert (page.data, page.next) == ([], None)


# -- deliveries -------------------------------------------------------------------------------------------


async def _one_of_each(desk: Desk) -> dict[str, bytes]:
    """Deliveries in every state, later ones newer."""
    other = await desk.new_endpoint()
    delivered = await desk.finish_one(now=NOW)
    dead = await desk.finish_one("dead", now=NOW + 1, event={"subject": "doc_2"})
    cancelled = await desk.publish_one(now=NOW + 2)
    await desk.ledger.end([cancelled], state="cancelled", reason="request", notices=[], now=NOW + 2)
    parked = await desk.publish_one(other, now=NOW + 3, parked="breaker")
    retrying = await desk.hold_one(now=NOW + 4, event={"type": "other"})
    await desk.record(desk.make.failed(retrying, due_at=NOW + 99))
    sending = await desk.hold_one(now=NOW + 5)
    scheduled = await desk.publish_one(other, now=NOW + 6, event={"subject": "doc_2"})
    found = {
        "delivered": delivered,
        "dead": dead,
        "cancelled": cancelled,
        "parked": parked,
        "retrying": retrying,
        "sending": sending,
        "scheduled": scheduled,
    }
    return {state: delivery.id for state, delivery in found.items()}


NEWEST_FIRST = ["scheduled", "sending", "retrying", "parked", "cancelled", "dead", "delivered"]
DELIVERIES = [
    (DeliveryFilter(), NEWEST_FIRST),
    (DeliveryFilter(tenant="acme"), NEWEST_FIRST),
    (DeliveryFilter(tenant="globex"), []),
    *((DeliveryFilter(state=state), [state]) for state in NEWEST_FIRST),
    (DeliveryFilter(state="dropped"), []),
    (DeliveryFilter(type="other"), ["retrying"]),
    (DeliveryFilter(outcome="refused"), ["retrying", "dead"]),
    (DeliveryFilter(outcome="delivered"), ["delivered"]),
    (DeliveryFilter(subject="doc_2"), ["scheduled", "dead"]),
    (DeliveryFilter(since=NOW + 4), ["scheduled", "sending", "retrying"]),
    (DeliveryFilter(until=NOW + 2), ["dead", "delivered"]),
    (DeliveryFilter(since=NOW + 1, until=NOW + 4), ["parked", "cancelled", "dead"]),
    (DeliveryFilter(subject="doc_2", state="dead", outcome="refused", tenant="acme"), ["dead"]),
    (DeliveryFilter(subject="doc_2", state="parked"), []),
]


@pytest.mark.parametrize(("where", "states"), DELIVERIES)
async def test_deliveries_are_listed_newest_first(
    desk: Desk, where: DeliveryFilter, states: list[str]
) -> None:
    ids = await _one_of_each(desk)
    for limit in LIMITS:
        listed = await desk.everything(desk.ledger.deliveries, where, limit=limit)
        assert [one.id for one in listed] == [ids[state] for state in states]
        assert [one.state for one in listed] == states


async def test_deliveries_are_listed_by_endpoint_and_by_event(desk: Desk) -> None:
    other = await desk.new_endpoint()
    both = await desk.publish(desk.endpoint, other)
    single = await desk.publish_one()
    await desk.ledger.end([both[0]], state="cancelled", reason=None, notices=[], now=NOW)
    for limit in LIMITS:
        by_endpoint = await desk.everything(
            desk.ledger.deliveries, DeliveryFilter(endpoint=desk.endpoint), limit=limit
        )
        assert [one.id for one in by_endpoint] == [single.id, both[0].id]
        by_event = await desk.everything(
            desk.ledger.deliveries, DeliveryFilter(event=both[0].event), limit=limit
        )
        assert {one.id for one in by_event} == {one.id for one in both}


async def test_a_listed_delivery_is_the_one_that_is_shown_alone(desk: Desk) -> None:
    ids = await _one_of_each(desk)
    listed = await desk.everything(desk.ledger.deliveries, DeliveryFilter())
    assert listed == [await desk.ledger.delivery(ids[state]) for state in NEWEST_FIRST]


async def test_an_open_delivery_says_who_holds_it(desk: Desk) -> None:
    held, ready, done = await desk.hold_one(), await desk.publish_one(), await desk.finish_one()
    assert (await desk.ledger.open_delivery(held.id))[1] == desk.node
    assert (await desk.ledger.open_delivery(ready.id))[1] is None
    assert await desk.ledger.open_delivery(done.id) is None


async def test_dead_letters_are_the_dead_that_nobody_dealt_with(desk: Desk) -> None:
    dead = [await desk.finish_one("dead", now=NOW + place) for place in range(4)]
    await desk.finish_one(now=NOW + 9)
    await desk.ledger.dismiss(dead[1].id, note="known", now=NOW)
    again = desk.make.delivery(await desk.ledger.event(dead[2].event), desk.endpoint, replay_of=dead[2].id)
    await desk.ledger.resend([dead[2].id], [again], now=NOW)
    for limit in LIMITS:
        listed = await desk.everything(desk.ledger.dead_letters, DeliveryFilter(), limit=limit)
        assert [one.id for one in listed] == [dead[3].id, dead[0].id]
    assert await desk.everything(desk.ledger.dead_letters, DeliveryFilter(endpoint=desk.make.id())) == []
    since = await desk.everything(desk.ledger.dead_letters, DeliveryFilter(since=NOW + 1))
    assert [one.id for one in since] == [dead[3].id]


# -- notices ----------------------------------------------------------------------------------------------


async def test_notices_are_listed_newest_first(desk: Desk) -> None:
    notices = [
        desk.make.notice("a", at=NOW),
        desk.make.notice("b", at=NOW + 1, endpoint=desk.endpoint),
        desk.make.notice("a", at=NOW + 2, tenant="globex", detail="ü"),
        desk.make.notice("a", at=NOW + 3, delivery=desk.make.id()),
    ]
    await desk.record(notices=notices)
    table = [
        (NoticeFilter(), [3, 2, 1, 0]),
        (NoticeFilter(kind="a"), [3, 2, 0]),
        (NoticeFilter(tenant="acme"), [3, 1, 0]),
        (NoticeFilter(endpoint=desk.endpoint), [1]),
        (NoticeFilter(since=NOW + 2), [3, 2]),
        (NoticeFilter(kind="a", tenant="acme", since=NOW + 1), [3]),
    ]
    for where, places in table:
        for limit in LIMITS:
            listed = await desk.everything(desk.ledger.notices, where, limit=limit)
            assert listed == [notices[place] for place in places]


# -- counts -----------------------------------------------------------------------------------------------


async def test_lanes_count_each_unfinished_delivery_once(desk: Desk) -> None:
    await desk.hold_one(due_at=NOW - 9)
    await desk.publish_one(parked="breaker", due_at=NOW - 9)
    await desk.publish_one(due_at=NOW - 5)
    await desk.publish_one(due_at=NOW)
    await desk.publish_one(due_at=NOW + 1)
    await desk.publish_one(lane=1, due_at=NOW + 5)
    await desk.publish_one(lane=1, parked="key")
    await desk.finish_one()
    first, retry = await desk.ledger.lane_counts(now=NOW)
    assert first == LaneCount(held=1, ready=2, scheduled=1, parked=1, oldest_due_at=NOW - 5, counted_at=NOW)
    assert retry == LaneCount(held=0, ready=0, scheduled=1, parked=1, oldest_due_at=None, counted_at=NOW)


async def test_empty_lanes_are_counted(desk: Desk) -> None:
    assert await desk.ledger.lane_counts(now=NOW) == [LaneCount(0, 0, 0, 0, None, NOW)] * 2
    assert await desk.ledger.parked_counts() == {}


async def test_a_ledger_on_a_disk_says_how_large_it_is_and_one_on_this_machine_how_much_is_free(
    desk: Desk,
) -> None:
    await _events(desk)
    size, room = await desk.ledger.size_bytes(), desk.ledger.room()

    assert size is None or size > 10_000
    assert room is None or room.free_bytes > 0 <= room.floor_bytes


ASKED = [
    (DeliveryFilter(correlation_id="c"), ["parked", "aged", "told"]),
    (DeliveryFilter(correlation_id="c", state="dead"), ["aged", "told"]),
    (DeliveryFilter(correlation_id="c", subject="doc_2"), ["told"]),
    (DeliveryFilter(correlation_id="c", tenant="globex"), []),
    (DeliveryFilter(correlation_id="none"), []),
    (DeliveryFilter(status=503), ["parked", "aged"]),
    (DeliveryFilter(status=500), ["told"]),
    (DeliveryFilter(status=503, state="dead"), ["aged"]),
    (DeliveryFilter(status=404), []),
    (DeliveryFilter(error="timeout"), ["retrying", "slow"]),
    (DeliveryFilter(error="timeout", state="dead"), ["slow"]),
    (DeliveryFilter(error="timeout", outcome="refused"), []),
    (DeliveryFilter(error="eof"), []),
    (DeliveryFilter(code="late"), ["delivered", "told"]),
    (DeliveryFilter(code="late", receipt="rejected"), ["told"]),
    (DeliveryFilter(code="late", status=500), ["told"]),
    (DeliveryFilter(code="late", correlation_id="c"), ["told"]),
    (DeliveryFilter(code="lat"), []),
    (DeliveryFilter(code="other"), []),
]


async def _after_requests(desk: Desk) -> dict[str, bytes]:
    """Deliveries by what came of their last request, later ones newer. `aged` and `parked` had one, and no other."""
    told = await desk.finish_one("dead", now=NOW, event={"correlation_id": "c", "subject": "doc_2"})
    slow = await desk.hold_one(now=NOW + 1)
    timeout = {"outcome": "timed_out", "status": None, "error": "timeout"}
    await desk.record(desk.make.ended(slow, "dead", **timeout))
    delivered = await desk.finish_one(now=NOW + 2)
    aged = await desk.hold_one(now=NOW + 3, event={"correlation_id": "c"})
    refused = desk.make.failed(aged, due_at=NOW)
    await desk.record(replace(refused, entry=replace(refused.entry, status=503)))
    open_row, _ = await desk.row(aged)
    await desk.ledger.end([open_row], state="dead", reason=None, notices=[], now=NOW + 3)
    retrying = await desk.hold_one(now=NOW + 4)
    failed = desk.make.failed(retrying, due_at=NOW + 99)
    await desk.record(replace(failed, entry=replace(failed.entry, **timeout)))
    parked = await desk.hold_one(now=NOW + 5, event={"correlation_id": "c"})
    refused = desk.make.failed(parked, due_at=NOW, parked="breaker")
    await desk.record(replace(refused, entry=replace(refused.entry, status=503)))
    untried = await desk.publish_one(now=NOW + 6)
    words = {
        told.id: word("rejected", NOW, code="late", note="other"),
        delivered.id: word("processed", NOW, code="late"),
        aged.id: word("rejected", NOW, note='"code":"late"'),
        untried.id: word("accepted", NOW),
    }
    for delivery, said in [(one, words[one.id]) for one in (told, delivered, aged, untried)]:
        await desk.ledger.apply_receipts(
            desk.endpoint, [Said(delivery.id, delivery.event, said)], tenant="acme", now=NOW
        )
    made = {
        "told": told, "slow": slow, "delivered": delivered, "aged": aged, "retrying": retrying, "parked": parked,
    }  # fmt: skip
    return {name: delivery.id for name, delivery in made.items()}


@pytest.mark.parametrize(("where", "names"), ASKED)
@pytest.mark.parametrize("few", [200, 0], ids=["events", "walked"])
async def test_deliveries_are_found_by_what_came_of_them(
    desk: Desk, where: DeliveryFilter, names: list[str], few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a correlation's events lead to them or they are walked; with dead letters, which are some of them."""
    monkeypatch.setattr(deliveries, "FEW_EVENTS", few)
    made = await _after_requests(desk)
    for limit in LIMITS:
        found = await desk.everything(desk.ledger.deliveries, where, limit=limit)
        assert [one.id for one in found] == [made[name] for name in names]
        dead = await desk.everything(desk.ledger.dead_letters, where, limit=limit)
        assert [one.id for one in dead] == [made[name] for name in names if name in ("told", "slow", "aged")]


async def test_a_delivery_says_what_its_event_is_about(desk: Desk) -> None:
    made = await _after_requests(desk)
    for name, about in (("told", ("doc_2", "c")), ("parked", ("doc_1", "c")), ("slow", ("doc_1", None))):
        seen = await desk.ledger.delivery(made[name])
        assert (seen.subject, seen.correlation_id) == about


@pytest.mark.parametrize(("few", "crowd"), [(10_000, 64), (1, 64), (1, 0)], ids=["few", "many", "crowds"])
async def test_lists_through_events_say_what_a_walk_says(
    desk: Desk, few: int, crowd: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events that share the beginning of their ids, open and finished deliveries of one, and pages that end within one."""
    monkeypatch.setattr(through_events, "FEW_RECEIPTS", few)
    monkeypatch.setattr(through_events, "RECEIPTS_MAX", crowd)
    other = await desk.new_endpoint()
    for place in range(12):
        subject = ("doc", "other", None)[place % 3]
        tenant = ("acme", "globex")[place % 2]
        incoming = desk.make.incoming(
            desk.endpoint, other, at=NOW + place // 4, event={"subject": subject, "tenant": tenant}
        )
        await desk.accept(incoming)
        if place % 4 < 2:
            said = [
                Said(one.id, one.event, word("rejected", NOW)) for one in incoming.deliveries[: place % 4 + 1]
            ]
            for one in said:
                endpoint = desk.endpoint if one.delivery == incoming.deliveries[0].id else other
                await desk.ledger.apply_receipts(endpoint, [one], tenant=tenant, now=NOW)
    for held in await desk.claim(limit=9):
        await desk.record(desk.make.dead(held))
    every = await desk.everything(desk.ledger.deliveries, DeliveryFilter(), limit=200)
    events = {one.event: await desk.ledger.event(one.event) for one in every}
    for tenant in (None, "acme", "globex"):
        for subject, stage in (
            ("doc", None),
            ("other", None),
            ("none", None),
            (None, "rejected"),
            (None, "accepted"),
            ("doc", "rejected"),
        ):
            for state in (None, "dead", "scheduled"):
                wanted = [
                    one.id for one in every
                    if tenant in (None, one.tenant) and subject in (None, events[one.event].subject)
                    and (stage is None or (one.receipt is not None and one.receipt.stage == stage))
                    and state in (None, one.state)
                ]  # fmt: skip
                where = DeliveryFilter(tenant=tenant, subject=subject, receipt=stage, state=state)
                for limit in (1, 2, 5, 200):
                    found = await desk.everything(desk.ledger.deliveries, where, limit=limit)
                    assert [one.id for one in found] == wanted
                    if state == "dead":
                        for its in (where, DeliveryFilter(tenant=tenant, subject=subject, receipt=stage)):
                            dead = await desk.everything(desk.ledger.dead_letters, its, limit=limit)
                            assert [one.id for one in dead] == wanted
    for subject in ("doc", "other", "none"):
        for limit in (1, 2, 200):
            found = await desk.everything(desk.ledger.events, EventFilter(subject=subject), limit=limit)
            assert [one.id for one in found] == sorted(
                {id for id, one in events.items() if one.subject == subject}, reverse=True
            )
