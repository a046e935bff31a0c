"""The way out: who holds what, what waits where, and what comes back unsent."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from surehook.core.model import PARKED_REASONS, STANDING_REASONS, Delivery
from surehook.ledgers.postgres import others as postgres_others
from surehook.ledgers.sqlite import others as sqlite_others
from surehook.ports.ledger import Incoming, ParkedGroup, Skip, is_full, weight

from .desk import ALL, Desk, bare
from .making import NOW

HOUR = 3_600_000


async def test_claims_take_the_earliest_due_first(desk: Desk) -> None:
    due = {offset: await desk.publish_one(due_at=NOW - offset) for offset in (5, 40, 1, 30, 20)}
    first = await desk.claim(limit=2)
    assert [one.id for one in first] == [due[40].id, due[30].id]
    assert [one.id for one in await desk.claim()] == [due[20].id, due[5].id, due[1].id]


async def test_claims_stop_at_the_instant_asked_for(desk: Desk) -> None:
    due, ahead = await desk.publish_one(due_at=NOW), await desk.publish_one(due_at=NOW + 1)
    assert [one.id for one in await desk.claim(due_by=NOW)] == [due.id]
    assert [one.id for one in await desk.claim(due_by=NOW + 1)] == [ahead.id]


async def test_a_claim_reads_its_own_lane_only(desk: Desk) -> None:
    first, retry = await desk.publish_one(), await desk.publish_one(lane=1)
    assert [one.id for one in await desk.claim(1)] == [retry.id]
    assert [one.id for one in await desk.claim(0)] == [first.id]


async def test_held_and_parked_rows_are_never_claimed(desk: Desk) -> None:
    await desk.hold_one()
    for reason in PARKED_REASONS:
        await desk.publish_one(parked=reason)
    assert await desk.claim() == []


async def test_a_row_is_leased_to_one_node(desk: Desk) -> None:
    other = await desk.new_node()
    deliveries = [await desk.publish_one() for _ in range(4)]
    mine = await desk.claim(limit=2)
    theirs = await desk.claim(node=other)
    assert [one.id for one in mine + theirs] == [one.id for one in deliveries]
    assert [(await desk.row(one))[1] for one in deliveries] == [desk.node] * 2 + [other] * 2


async def test_a_claimed_delivery_carries_the_bytes_and_its_past(desk: Desk) -> None:
    held = await desk.hold_one(overdue_at=NOW + HOUR)
    await desk.record(desk.make.failed(held, due_at=NOW + 5, spared=1))
    (claimed,) = await desk.claim(1, due_by=NOW + 5)
    expected = structs.replace(
        held, lane=1, attempt=2, due_at=NOW + 5, spared=1, outcome="refused", unknown=False
    )
    assert bare(claimed) == bare(expected)
    assert claimed.body == held.body


async def test_claiming_by_id_skips_what_is_held_parked_ahead_or_gone(desk: Desk) -> None:
    ready, ahead = await desk.publish_one(), await desk.publish_one(due_at=NOW + 1)
    held, parked = await desk.hold_one(), await desk.publish_one(parked="breaker")
    asked = [held.id, ready.id, parked.id, ahead.id, desk.make.id()]
    claimed = await desk.ledger.claim_ids(asked, node=desk.node, now=NOW)
    assert ([one.id for one in claimed.rows], claimed.rest) == ([ready.id], [])
    claimed = await desk.ledger.claim_ids([ready.id], node=desk.node, now=NOW)
    assert (claimed.rows, claimed.rest) == ([], [])


async def test_released_rows_are_ready_again_and_leave_no_trace(desk: Desk) -> None:
    held = await desk.hold_one(due_at=NOW - 3)
    await desk.ledger.release([held], node=desk.node, now=NOW)
    row, holder = await desk.row(held)
    assert (holder, row.due_at, row.attempt, row.freed) == (None, NOW - 3, 1, 0)
    assert await desk.kinds(held) == []
    assert [one.id for one in await desk.claim()] == [held.id]


async def test_parked_rows_keep_their_time_and_number(desk: Desk) -> None:
    held = await desk.hold_one()
    await desk.record(desk.make.failed(held, due_at=NOW + 50))
    (held,) = await desk.claim(1, due_by=NOW + 50)
    await desk.ledger.park([held], "breaker", node=desk.node, now=NOW)
    row, holder = await desk.row(held)
    assert (holder, row.due_at, row.attempt, row.lane) == (None, NOW + 50, 2, 1)
    view = await desk.ledger.delivery(held.id)
    assert (view.state, view.reason, view.due_at) == ("parked", "breaker", NOW + 50)


@pytest.mark.parametrize("call", ["park", "release"])
async def test_only_rows_in_hand_are_put_aside(desk: Desk, call: str) -> None:
    """Another node's row and one whose attempt has moved on stay as they are."""
    other = await desk.new_node()
    theirs, stale, mine = (
        await desk.publish_one(held=True, node=other),
        await desk.hold_one(),
        await desk.hold_one(),
    )
    batch = [theirs, structs.replace(stale, attempt=2), mine]
    if call == "park":
        await desk.ledger.park(batch, "share", node=desk.node, now=NOW)
    else:
        await desk.ledger.release(batch, node=desk.node, now=NOW)
    assert [await desk.state(one) for one in (theirs, stale)] == ["sending", "sending"]
    assert await desk.state(mine) == ("parked" if call == "park" else "scheduled")


async def test_parked_groups_are_pairs_of_endpoint_and_reason(desk: Desk) -> None:
    other = await desk.new_endpoint()
    for endpoint, reason in (
        (desk.endpoint, "breaker"),
        (desk.endpoint, "breaker"),
        (other, "breaker"),
        (other, "paused"),
    ):
        await desk.publish_one(endpoint, parked=reason)
    groups = {(desk.endpoint, "breaker"): 2, (other, "breaker"): 1, (other, "paused"): 1}
    assert {(group.endpoint, group.reason) for group in await desk.ledger.parked_groups()} == set(groups)
    assert len(await desk.ledger.parked_groups()) == 3
    assert await desk.ledger.parked_counts() == groups


async def test_a_group_is_gone_with_its_last_row(desk: Desk) -> None:
    waiting = [await desk.publish_one(parked="breaker") for _ in range(3)]
    first = min(one.id for one in waiting)
    assert await desk.ledger.parked_groups() == [ParkedGroup(desk.endpoint, "breaker", first)]
    await desk.ledger.unpark(desk.endpoint, ["breaker"], node=desk.node, limit=ALL, now=NOW)
    assert await desk.ledger.parked_groups() == []


async def test_unparking_leases_the_oldest_of_the_named_reasons(desk: Desk) -> None:
    other = await desk.new_endpoint()
    rows = {}
    for name, endpoint, reason in (
        ("a", desk.endpoint, "share"),
        ("b", desk.endpoint, "breaker"),
        ("elsewhere", other, "breaker"),
        ("paused", desk.endpoint, "paused"),
        ("c", desk.endpoint, "share"),
        ("d", desk.endpoint, "breaker"),
    ):
        rows[name] = await desk.publish_one(endpoint, parked=reason)
    reasons = ["breaker", "share"]
    first = await desk.ledger.unpark(desk.endpoint, reasons, node=desk.node, limit=3, now=NOW)
    rest = await desk.ledger.unpark(desk.endpoint, reasons, node=desk.node, limit=3, now=NOW)
    assert [one.id for one in first] == [rows[name].id for name in "abc"]
    assert [one.id for one in rest] == [rows["d"].id]
    assert [await desk.state(rows[name]) for name in ("a", "elsewhere", "paused")] == [
        "sending",
        "parked",
        "parked",
    ]
    assert await desk.ledger.unpark(desk.endpoint, [], node=desk.node, limit=3, now=NOW) == []


@pytest.mark.parametrize("reason", PARKED_REASONS)
async def test_age_stands_still_for_standing_reasons_alone(desk: Desk, reason: str) -> None:
    held = await desk.hold_one()
    await desk.ledger.park([held], reason, node=desk.node, now=NOW + HOUR)
    (back,) = await desk.ledger.unpark(desk.endpoint, [reason], node=desk.node, limit=1, now=NOW + 3 * HOUR)
    assert back.stood_ms == (2 * HOUR if reason in STANDING_REASONS else 0)
    assert back.born_at == held.born_at


async def test_time_stood_is_counted_from_birth_or_from_the_result_that_parked(desk: Desk) -> None:
    born = await desk.publish_one(parked="paused")
    held = await desk.hold_one()
    await desk.record(desk.make.failed(held, due_at=NOW, parked="failure"), now=NOW + HOUR)
    later = NOW + 4 * HOUR
    (one,) = await desk.ledger.unpark(desk.endpoint, ["paused"], node=desk.node, limit=1, now=later)
    (two,) = await desk.ledger.unpark(desk.endpoint, ["failure"], node=desk.node, limit=1, now=later)
    assert (one.id, one.stood_ms) == (born.id, 4 * HOUR)
    assert (two.id, two.stood_ms) == (held.id, 3 * HOUR)


async def test_time_stood_adds_up(desk: Desk) -> None:
    held = await desk.hold_one()
    for round in range(3):
        await desk.ledger.park([held], "paused", node=desk.node, now=NOW + round * HOUR)
        (held,) = await desk.ledger.unpark(
            desk.endpoint, ["paused"], node=desk.node, limit=1, now=NOW + round * HOUR + 10
        )
    assert held.stood_ms == 30


async def test_a_clock_that_stepped_back_takes_no_time_away(desk: Desk) -> None:
    held = await desk.hold_one()
    await desk.ledger.park([held], "paused", node=desk.node, now=NOW)
    (back,) = await desk.ledger.unpark(desk.endpoint, ["paused"], node=desk.node, limit=1, now=NOW - HOUR)
    assert back.stood_ms == 0


async def test_an_unparked_row_keeps_its_time(desk: Desk) -> None:
    await desk.publish_one(parked="breaker", due_at=NOW + HOUR)
    (back,) = await desk.ledger.unpark(desk.endpoint, ["breaker"], node=desk.node, limit=1, now=NOW)
    assert (back.due_at, back.attempt) == (NOW + HOUR, 1)


async def test_a_restart_begins_the_schedule_anew_and_goes_on_counting(desk: Desk) -> None:
    held = await desk.hold_one()
    await desk.record(desk.make.failed(held, due_at=NOW + 9 * HOUR, parked="failure"), now=NOW)
    later = NOW + HOUR
    (back,) = await desk.ledger.unpark(
        desk.endpoint, ["failure"], node=desk.node, limit=1, now=later, restart=True
    )
    assert (back.attempt, back.spared, back.born_at, back.due_at, back.stood_ms) == (2, 1, later, later, 0)
    row, holder = await desk.row(held)
    assert (bare(row), holder) == (bare(back), desk.node)


async def test_what_was_unparked_is_in_hand(desk: Desk) -> None:
    await desk.publish_one(parked="share")
    (back,) = await desk.ledger.unpark(desk.endpoint, ["share"], node=desk.node, limit=1, now=NOW)
    answer = await desk.record(desk.make.delivered(back))
    assert (answer.lost, await desk.state(back)) == ([], "delivered")


async def test_the_next_due_instant_is_of_unheld_unparked_rows_of_the_lane(desk: Desk) -> None:
    assert await desk.ledger.next_due(0) is None
    await desk.hold_one(due_at=NOW - 9)
    await desk.publish_one(parked="breaker", due_at=NOW - 8)
    await desk.publish_one(lane=1, due_at=NOW - 7)
    await desk.publish_one(due_at=NOW + 2)
    await desk.publish_one(due_at=NOW + 1)
    assert await desk.ledger.next_due(0) == NOW + 1
    assert await desk.ledger.next_due(1) == NOW - 7


# -- bounds in bytes, and past those who have enough --------------------------------------------------------


def big(desk: Desk, *endpoints: bytes, size: int = 1000, **fields: Any) -> Incoming:
    return desk.make.incoming(*(endpoints or (desk.endpoint,)), event={"body": b"x" * size}, **fields)


async def publish_big(desk: Desk, *endpoints: bytes, **fields: Any) -> list[Delivery]:
    item = big(desk, *endpoints, **fields)
    await desk.accept(item)
    return item.deliveries


@pytest.mark.parametrize("call", ["claim", "claim_others", "unpark"])
async def test_a_call_ends_with_the_row_that_reaches_the_bytes(desk: Desk, call: str) -> None:
    for _ in range(6):
        await publish_big(desk, parked="share" if call == "unpark" else None)

    async def take(size: int) -> int:
        asked: Any = {"node": desk.node, "limit": ALL, "now": NOW, "size": size}
        if call == "unpark":
            rows = await desk.ledger.unpark(desk.endpoint, ["share"], **asked)
        elif call == "claim":
            rows = await desk.ledger.claim(0, due_by=NOW, **asked)
        else:
            rows = await desk.ledger.claim_others(0, due_by=NOW, skip=Skip(), **asked)
        assert all(len(row.body) == 1000 for row in rows)
        assert is_full(rows, limit=ALL, size=size) == (len(rows) > 0)
        return len(rows)

    assert [await take(1) for _ in range(2)] == [1, 1], "one row always comes"
    assert await take(1001) == 2
    assert await take(2000) == 2
    assert await take(1) == 0


async def test_claiming_by_id_tells_what_its_bytes_left_apart_from_what_is_not_to_be_had(desk: Desk) -> None:
    """In the order of the ids, whatever it is. What stands behind the last row and could not be had is no reason to ask
    again."""
    rows = [(await publish_big(desk))[0].id for _ in range(5)]
    parked = (await publish_big(desk, parked="breaker"))[0].id
    second, fifth, first, fourth, third = rows
    asked = [first, desk.make.id(), second, parked, second, third, fourth, parked, fifth, desk.make.id()]

    async def take(asked: list[bytes], size: int) -> tuple[list[bytes], list[bytes]]:
        claimed = await desk.ledger.claim_ids(asked, node=desk.node, now=NOW, size=size)
        assert [len(row.body) for row in claimed.rows] == [1000] * len(claimed.rows)
        return [row.id for row in claimed.rows], claimed.rest

    taken, rest = await take(asked, 1001)
    assert (taken, rest) == ([first, second], asked[5:7] + asked[8:])
    assert await take([first, *rest], 1) == ([third], [fourth, fifth, asked[-1]]), "one row always comes"
    assert await take([fourth, parked, first], 1000) == ([fourth], []), "nothing is left behind it"
    assert await take([fifth], 1000) == ([fifth], [])


async def test_a_body_counts_once_where_rows_are_claimed_by_id(desk: Desk) -> None:
    endpoints = [await desk.new_endpoint() for _ in range(5)]
    ids = [row.id for _ in range(2) for row in await publish_big(desk, *endpoints)]
    claimed = await desk.ledger.claim_ids(ids, node=desk.node, now=NOW, size=1001)
    assert ([row.id for row in claimed.rows], claimed.rest) == (ids[:6], ids[6:])
    assert [len(row.body) for row in claimed.rows] == [1000] * 6


async def test_an_events_body_counts_once_and_is_one_object(desk: Desk) -> None:
    endpoints = [await desk.new_endpoint() for _ in range(5)]
    await publish_big(desk, *endpoints)
    await publish_big(desk, *endpoints)
    rows = await desk.ledger.claim(0, node=desk.node, limit=ALL, due_by=NOW, now=NOW, size=1001)
    assert len(rows) == 6
    assert [len(row.body) for row in rows] == [1000] * 6
    assert weight(rows) == 2000


async def test_those_who_have_enough_are_passed_over(desk: Desk) -> None:
    full, other = await desk.new_endpoint(), await desk.new_endpoint()
    theirs = await desk.new_endpoint(tenant=await another_tenant(desk))
    for _ in range(20):
        await desk.publish_one(full, due_at=NOW - 5)
    await desk.publish_one(theirs, due_at=NOW - 5, event={"tenant": "another"})
    wanted = [await desk.publish_one(other, due_at=NOW - 4), await desk.publish_one(other, due_at=NOW)]
    await desk.publish_one(other, due_at=NOW + 1)
    asked: Any = {"node": desk.node, "limit": ALL, "due_by": NOW, "now": NOW}
    skip = Skip(endpoints=(full,), tenants=("another",))
    rows = await desk.ledger.claim_others(0, skip=skip, **asked)
    rows += await desk.ledger.claim_others(0, skip=skip, **asked)
    assert sorted(row.id for row in rows) == sorted(one.id for one in wanted)
    assert [(await desk.row(one))[1] for one in wanted] == [desk.node] * 2
    assert len(await desk.claim()) == 21


async def test_a_look_at_what_is_fresh_leaves_what_lies_behind(desk: Desk) -> None:
    full, other = await desk.new_endpoint(), await desk.new_endpoint()
    await desk.publish_one(full, due_at=NOW - 5)
    old = await desk.publish_one(other, due_at=NOW - 60_000)
    new = await desk.publish_one(other, due_at=NOW - 5)
    asked: Any = {"node": desk.node, "limit": ALL, "due_by": NOW, "now": NOW, "skip": Skip(endpoints=(full,))}
    assert [row.id for row in await desk.ledger.claim_others(0, fresh=True, **asked)] == [new.id]
    assert await desk.ledger.claim_others(0, fresh=True, **asked) == []
    assert [row.id for row in await desk.ledger.claim_others(0, **asked)] == [old.id]


@pytest.mark.parametrize("fresh", [True, False])
async def test_what_has_just_fallen_due_is_found_behind_more_rows_than_one_look_reads(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, fresh: bool
) -> None:
    """Fifty thousand rows a second are more than a look reads, and the row that a hint tells of is the last one."""
    monkeypatch.setattr(sqlite_others, "LOOK_ROWS", 7)
    monkeypatch.setattr(postgres_others, "LOOK_ROWS", 7)
    full, other = await desk.new_endpoint(), await desk.new_endpoint()
    for number in range(60):
        await desk.publish_one(full, due_at=NOW - 900 + number * 15)
    asked: Any = {"node": desk.node, "limit": ALL, "due_by": NOW, "now": NOW, "skip": Skip(endpoints=(full,))}
    await desk.ledger.claim(0, node=desk.node, limit=ALL, due_by=NOW - 1_000, now=NOW - 1_000)
    hinted = await desk.publish_one(other, due_at=NOW)
    assert [row.id for row in await desk.ledger.claim_others(0, fresh=fresh, **asked)] == [hinted.id]


async def another_tenant(desk: Desk) -> str:
    await desk.ledger.add_tenant(desk.make.tenant("another"))
    return "another"


async def test_what_lies_far_behind_the_passed_over_is_found_in_a_few_calls(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call looks at a bounded number of rows, and the next one goes on from there."""
    monkeypatch.setattr(sqlite_others, "LOOK_ROWS", 7)
    monkeypatch.setattr(postgres_others, "LOOK_ROWS", 7)
    full, other = await desk.new_endpoint(), await desk.new_endpoint()
    for number in range(60):
        await desk.publish_one(full, due_at=NOW - 10_000 - number // 20)
    wanted = [await desk.publish_one(other, due_at=NOW - due) for due in (20_000, 10_001, 9_000, 100)]
    found: list[bytes] = []
    for call in range(20):
        now = NOW + call * 10
        rows = await desk.ledger.claim_others(
            0, node=desk.node, limit=2, due_by=now, now=now, skip=Skip(endpoints=(full,))
        )
        found += [row.id for row in rows]
    assert sorted(found) == sorted(one.id for one in wanted)
    late = await desk.publish_one(other, due_at=NOW - 15_000)
    now = NOW + 5_000
    for call in range(20):
        rows = await desk.ledger.claim_others(
            0, node=desk.node, limit=2, due_by=now, now=now + call, skip=Skip(endpoints=(full,))
        )
        found += [row.id for row in rows]
    assert late.id in found, "the next pass comes by"
