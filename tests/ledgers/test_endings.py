"""Endings without a call in hand, and what has waited too long."""

from __future__ import annotations

from msgspec import structs

from surehook.core.model import Delivery
from surehook.ledgers.endpoint_walks import FORGET_MS
from surehook.ports.ledger import AgedGroup, AgedPage

from .desk import ALL, Desk
from .making import NOW

HOUR = 3_600_000


async def test_an_ended_delivery_shows_an_ended_entry_that_is_no_attempt(desk: Desk) -> None:
    held = await desk.hold_one()
    await desk.record(desk.make.failed(held, due_at=NOW + 5))
    row, _ = await desk.row(held)
    ended = await desk.ledger.end([row], state="cancelled", reason="request", notices=[], now=NOW + 9)
    assert ended == [held.id]
    entries = await desk.ledger.attempts(held.id)
    assert [(entry.kind, entry.number) for entry in entries] == [("attempt", 1), ("ended", 2)]
    assert (entries[-1].started_at, entries[-1].outcome) == (NOW + 9, None)
    view = await desk.ledger.delivery(held.id)
    assert (view.state, view.reason, view.attempts) == ("cancelled", "request", 1)
    assert (view.finished_at, view.due_at) == (NOW + 9, None)
    assert await desk.ledger.open_delivery(held.id) is None


async def test_the_last_result_stands_beside_the_end(desk: Desk) -> None:
    held = await desk.hold_one()
    await desk.record(desk.make.failed(held, due_at=NOW + 5))
    row, _ = await desk.row(held)
    await desk.ledger.end([row], state="dead", reason=None, notices=[], now=NOW)
    view = await desk.ledger.delivery(held.id)
    assert (view.state, view.outcome, view.reason) == ("dead", "refused", None)


async def test_parked_deliveries_are_ended_too(desk: Desk) -> None:
    parked = await desk.publish_one(parked="breaker")
    await desk.ledger.end([parked], state="dead", reason=None, notices=[], now=NOW)
    view = await desk.ledger.delivery(parked.id)
    assert (view.state, view.reason, view.attempts, view.outcome) == ("dead", None, 0, None)
    assert await desk.ledger.parked_groups() == []


async def test_held_and_vanished_deliveries_are_not_ended(desk: Desk) -> None:
    held, done, ready = await desk.hold_one(), await desk.finish_one(), await desk.publish_one()
    never = desk.make.delivery(desk.make.event(), desk.endpoint)
    batch = [held, done, ready, never, ready]
    assert await desk.ledger.end(batch, state="dead", reason=None, notices=[], now=NOW) == [ready.id]
    assert [await desk.state(one) for one in (held, done, ready)] == ["sending", "delivered", "dead"]
    assert await desk.kinds(held) == []
    assert await desk.kinds(ready) == [("ended", 1)]


async def test_what_went_on_since_it_was_read_is_not_ended(desk: Desk) -> None:
    """Whoever read it may have slept for a minute since."""
    tried, begun_anew, same = [await desk.publish_one() for _ in range(3)]
    stale = [structs.replace(tried, attempt=2), structs.replace(begun_anew, born_at=NOW - 60_000), same]
    assert await desk.ledger.end(stale, state="dead", reason=None, notices=[], now=NOW) == [same.id]
    assert [await desk.state(one) for one in (tried, begun_anew)] == ["scheduled"] * 2


async def test_of_two_nodes_that_end_a_delivery_at_one_instant_one_tells_of_it(desk: Desk) -> None:
    row = await desk.publish_one()
    for expected in ([row.id], []):
        notices = [desk.make.notice(delivery=row.id)]
        ended = await desk.ledger.end([row], state="dead", reason=None, notices=notices, now=NOW)
        assert ended == expected
    assert await desk.notice_kinds() == ["delivery.dead"]


async def test_notices_of_skipped_deliveries_are_not_kept(desk: Desk) -> None:
    """A notice that a delivery died would not be true of one that did not."""
    held, ready = await desk.hold_one(), await desk.publish_one()
    notices = [
        desk.make.notice(delivery=held.id),
        desk.make.notice(delivery=ready.id),
        desk.make.notice("endpoint.failure"),
    ]
    await desk.ledger.end([held, ready], state="dead", reason=None, notices=notices, now=NOW)
    assert sorted(await desk.notice_kinds()) == ["delivery.dead", "endpoint.failure"]


async def test_an_endpoint_is_emptied_a_bounded_number_at_a_time(desk: Desk) -> None:
    other = await desk.new_endpoint()
    stays = await desk.publish_one(other)
    held = await desk.hold_one()
    waiting = [await desk.publish_one() for _ in range(3)] + [await desk.publish_one(parked="paused")]
    took = [
        await desk.ledger.end_endpoint(desk.endpoint, reason="deleted", limit=3, now=NOW) for _ in range(3)
    ]
    assert took == [3, 1, 0]
    assert {await desk.state(one) for one in waiting} == {"cancelled"}
    view = await desk.ledger.delivery(waiting[0].id)
    assert (view.reason, view.attempts) == ("deleted", 0)
    assert await desk.kinds(waiting[0]) == [("ended", 1)]
    assert [await desk.state(one) for one in (held, stays)] == ["sending", "scheduled"]


async def test_a_walk_that_nobody_goes_on_with_is_forgotten(desk: Desk) -> None:
    """Another process may end what is left."""
    walks = getattr(desk.ledger, "_endpoint_walks", None)
    for _ in range(3):
        endpoint = await desk.new_endpoint()
        for _ in range(2):
            await desk.publish_one(endpoint)
        assert await desk.ledger.end_endpoint(endpoint, reason="deleted", limit=1, now=NOW) == 1
    later, took = NOW + FORGET_MS, []
    while not took or took[-1]:
        took.append(await desk.ledger.end_endpoint(endpoint, reason="deleted", limit=1, now=later))
    assert took == [1, 0], "it begins anew"
    assert walks is None or len(walks.cursors) == 0


async def test_aged_rows_of_a_parking_group_are_found_by_birth_and_time_stood(desk: Desk) -> None:
    async def parked(born_at: int, *, stood_ms: int = 0) -> Delivery:
        held = await desk.publish_one(parked="paused", born_at=born_at)
        await desk.ledger.unpark(desk.endpoint, ["paused"], node=desk.node, limit=1, now=NOW + stood_ms)
        await desk.ledger.park([held], "breaker", node=desk.node, now=NOW + stood_ms)
        return held

    old, edge = await parked(NOW - 2), await parked(NOW - 1)
    stood, older = await parked(NOW - 2, stood_ms=1), await parked(NOW - 9, stood_ms=6)
    await desk.publish_one(parked="key", born_at=NOW - 9)
    await desk.publish_one(await desk.new_endpoint(), parked="breaker", born_at=NOW - 9)
    await desk.publish_one(born_at=NOW - 9)
    assert {one.id for one in await _aged(desk, "breaker", NOW - 1)} == {old.id, older.id}
    assert {one.id for one in await _aged(desk, "breaker", NOW)} == {old.id, older.id, edge.id, stood.id}
    assert await _aged(desk, "share", NOW) == []


async def _aged(desk: Desk, reason: str, born_before: int) -> list[Delivery]:
    page = await desk.ledger.parked_aged([AgedGroup(desk.endpoint, reason, born_before)], limit=ALL)
    assert page.goes_on == []
    return page.rows


async def test_aged_rows_come_in_equal_parts_of_all_groups_and_go_on_where_a_part_ended(desk: Desk) -> None:
    other = await desk.new_endpoint()
    many = [await desk.publish_one(parked="breaker", born_at=NOW - 9) for _ in range(5)]
    few = [await desk.publish_one(other, parked="share", born_at=NOW - 9)]
    groups = [AgedGroup(desk.endpoint, "breaker", NOW), AgedGroup(other, "share", NOW)]
    seen: list[list[bytes]] = []
    while groups:
        page = await desk.ledger.parked_aged(groups, limit=4)
        seen.append([one.id for one in page.rows])
        groups = page.goes_on
    ids = sorted(one.id for one in many)
    assert [sorted(part) for part in seen] == [sorted([*ids[:2], few[0].id]), ids[2:]]
    assert await desk.ledger.parked_aged([], limit=4) == AgedPage([], [])


async def test_aged_rows_are_read_without_their_bodies(desk: Desk) -> None:
    waiting = await desk.publish_one(parked="breaker", born_at=NOW - 9)
    (row,) = await _aged(desk, "breaker", NOW)
    assert row == structs.replace(waiting, body=b"", parked="breaker")


async def test_a_row_that_left_its_parking_group_has_no_age_there(desk: Desk) -> None:
    left = await desk.publish_one(parked="breaker", born_at=NOW - 9)
    stays = await desk.publish_one(parked="breaker", born_at=NOW - 5)
    await desk.ledger.unpark(desk.endpoint, ["breaker"], node=desk.node, limit=1, now=NOW)
    assert [one.id for one in await _aged(desk, "breaker", NOW)] == [stays.id]
    await desk.ledger.park([left], "key", node=desk.node, now=NOW)
    assert [one.id for one in await _aged(desk, "key", NOW)] == [left.id]


async def test_unfinished_deliveries_are_overdue_from_their_instant_on(desk: Desk) -> None:
    passed = await desk.publish_one(overdue_at=NOW)
    held, parked = (
        await desk.hold_one(overdue_at=NOW - 5),
        await desk.publish_one(overdue_at=NOW - 3, parked="key"),
    )
    await desk.publish_one(overdue_at=NOW + 1)
    await desk.publish_one()
    await desk.finish_one(overdue_at=NOW - 9)
    assert {one.id for one in await desk.ledger.overdue(now=NOW, limit=ALL)} == {
        passed.id,
        held.id,
        parked.id,
    }
    assert len(await desk.ledger.overdue(now=NOW, limit=2)) == 2


async def test_an_overdue_delivery_is_told_once(desk: Desk) -> None:
    late = await desk.publish_one(overdue_at=NOW)
    found = await desk.ledger.overdue(now=NOW, limit=ALL)
    await desk.ledger.mark_overdue(found, [desk.make.notice("delivery.overdue", delivery=late.id)], now=NOW)
    assert await desk.ledger.overdue(now=NOW + HOUR, limit=ALL) == []
    await desk.ledger.mark_overdue(found, [desk.make.notice("delivery.overdue", delivery=late.id)], now=NOW)
    assert await desk.notice_kinds() == ["delivery.overdue"]
    row, _ = await desk.row(late)
    assert (row.overdue_at, await desk.state(late)) == (None, "scheduled")


async def test_a_delivery_that_finished_meanwhile_is_not_overdue(desk: Desk) -> None:
    late = await desk.hold_one(overdue_at=NOW)
    found = await desk.ledger.overdue(now=NOW, limit=ALL)
    await desk.record(desk.make.delivered(late))
    await desk.ledger.mark_overdue(found, [desk.make.notice("delivery.overdue", delivery=late.id)], now=NOW)
    assert await desk.notice_kinds() == []


async def test_a_walk_meets_the_endpoints_of_all_that_nobody_holds(desk: Desk) -> None:
    parked, scheduled, held = [await desk.new_endpoint() for _ in range(3)]
    await desk.publish_one(parked, parked="share")
    await desk.publish_one(scheduled, at=NOW + 86_400_000)
    await desk.publish_one(held, held=True)
    after: bytes | None = b""
    found: set[bytes] = set()
    while after is not None:
        before = after
        some, after = await desk.ledger.unheld_endpoints(after)
        found.update(some)
        assert after is None or after > before
    assert found == {parked, scheduled}
