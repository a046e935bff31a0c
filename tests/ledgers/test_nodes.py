"""The lease is a fence: what an evicted node cannot do, and what its eviction frees."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from surehook.core.errors import NodeEvicted
from surehook.core.model import Delivery

from .desk import ALL, Desk
from .making import NOW

SECOND = 1_000


async def test_a_node_that_entered_is_among_the_nodes(desk: Desk) -> None:
    other = desk.make.node()
    await desk.ledger.enter(other, now=NOW)
    assert {node.id for node in await desk.ledger.nodes()} == {desk.node, other.id}
    assert other in await desk.ledger.nodes()


async def test_a_beat_is_seen_by_the_other_nodes(desk: Desk) -> None:
    other = await desk.new_node()
    await desk.ledger.beat(desk.node, 7, now=NOW)
    counters = await desk.ledger.beat(other, 3, now=NOW)
    assert counters == {desk.node: 7, other: 3}


async def test_an_evicted_node_has_no_counter_and_is_no_node(desk: Desk) -> None:
    other = await desk.new_node()
    await desk.ledger.evict([other], now=NOW)
    assert set(await desk.ledger.beat(desk.node, 1, now=NOW)) == {desk.node}
    assert [node.id for node in await desk.ledger.nodes()] == [desk.node]


Call = Callable[[Desk, Delivery, bytes], Awaitable[Any]]


async def _accept(desk: Desk, held: Delivery, node: bytes) -> None:
    version = await desk.ledger.version()
    await desk.ledger.accept([desk.make.incoming(desk.endpoint)], node=node, version=version, now=NOW)


async def _accept_stale(desk: Desk, held: Delivery, node: bytes) -> None:
    await desk.ledger.accept([desk.make.incoming(desk.endpoint)], node=node, version=-1, now=NOW)


async def _accept_nothing(desk: Desk, held: Delivery, node: bytes) -> None:
    await desk.ledger.accept([], node=node, version=await desk.ledger.version(), now=NOW)


FENCED: dict[str, Call] = {
    "beat": lambda desk, held, node: desk.ledger.beat(node, 9, now=NOW),
    "accept": _accept,
    "accept of a stale fan-out": _accept_stale,
    "accept of nothing": _accept_nothing,
    "claim": lambda desk, held, node: desk.ledger.claim(0, node=node, limit=ALL, due_by=NOW, now=NOW),
    "claim_ids": lambda desk, held, node: desk.ledger.claim_ids([held.id], node=node, now=NOW),
    "unpark": lambda desk, held, node: desk.ledger.unpark(
        desk.endpoint, ["breaker"], node=node, limit=ALL, now=NOW
    ),
    "park": lambda desk, held, node: desk.ledger.park([held], "breaker", node=node, now=NOW),
    "release": lambda desk, held, node: desk.ledger.release([held], node=node, now=NOW),
    "free": lambda desk, held, node: desk.ledger.free([held.id], node=node, now=NOW),
    "record": lambda desk, held, node: desk.record(desk.make.delivered(held), node=node),
    "record of nothing": lambda desk, held, node: desk.record(node=node),
}


@pytest.mark.parametrize("call", FENCED.values(), ids=FENCED.keys())
@pytest.mark.parametrize("entered", [True, False], ids=["evicted", "never entered"])
async def test_a_node_that_is_not_alive_writes_nothing(desk: Desk, call: Call, entered: bool) -> None:
    """Whole calls fail: the row that it held stays as the eviction left it."""
    other = await desk.new_node() if entered else desk.make.node().id
    held = await desk.publish_one(held=True, node=other if entered else None)
    parked = await desk.publish_one(parked="breaker")
    if entered:
        await desk.ledger.evict([other], now=NOW)
    before = [await desk.ledger.open_delivery(one.id) for one in (held, parked)]
    history = await desk.ledger.attempts(held.id)
    with pytest.raises(NodeEvicted):
        await call(desk, held, other)
    assert [await desk.ledger.open_delivery(one.id) for one in (held, parked)] == before
    assert await desk.ledger.attempts(held.id) == history
    assert await desk.ledger.held_count(other) == 0


async def test_eviction_frees_what_the_node_held_and_says_how_much(desk: Desk) -> None:
    other = await desk.new_node()
    mine = await desk.hold_one()
    theirs = [await desk.publish_one(held=True, node=other) for _ in range(3)]
    assert (await desk.ledger.evict([other], now=NOW)).freed == 3
    assert [await desk.state(one) for one in theirs] == ["scheduled"] * 3
    assert await desk.state(mine) == "sending"
    assert await desk.ledger.held_count(other) == 0


async def test_a_freed_delivery_keeps_its_time_and_its_place_in_the_schedule(desk: Desk) -> None:
    held = await desk.hold_one(due_at=NOW - 700)
    await desk.ledger.evict([desk.node], now=NOW + SECOND)
    row, holder = await desk.row(held)
    assert (row.due_at, row.attempt, row.lane, holder) == (NOW - 700, 1, 0, None)
    assert row.freed == 1


async def test_a_freed_delivery_shows_an_interrupted_entry_that_is_no_attempt(desk: Desk) -> None:
    held = await desk.hold_one()
    await desk.ledger.evict([desk.node], now=NOW + SECOND)
    (entry,) = await desk.ledger.attempts(held.id)
    assert (entry.kind, entry.number, entry.started_at, entry.outcome) == (
        "interrupted",
        1,
        NOW + SECOND,
        None,
    )
    view = await desk.ledger.delivery(held.id)
    assert (view.state, view.attempts) == ("scheduled", 0)


async def test_a_second_eviction_frees_nothing(desk: Desk) -> None:
    await desk.hold_one()
    assert (await desk.ledger.evict([desk.node], now=NOW)).freed == 1
    assert (await desk.ledger.evict([desk.node, desk.make.id()], now=NOW)).freed == 0


async def test_several_nodes_are_evicted_in_one_call(desk: Desk) -> None:
    other = await desk.new_node()
    await desk.hold_one()
    await desk.publish_one(held=True, node=other)
    assert (await desk.ledger.evict([desk.node, other], now=NOW)).freed == 2
    assert await desk.ledger.nodes() == []


async def test_a_node_that_has_beaten_since_it_was_judged_is_not_evicted(desk: Desk) -> None:
    """Frozen for longer than its lease and awake again, it relies on that beat, and sends."""
    silent, awake = await desk.new_node(), await desk.new_node()
    held = [await desk.publish_one(held=True, node=node) for node in (silent, awake)]
    judged = {silent: 3, awake: 7}
    for node, counter in judged.items():
        await desk.ledger.beat(node, counter, now=NOW)
    await desk.ledger.beat(awake, 8, now=NOW)
    eviction = await desk.ledger.evict([silent, awake], now=NOW, judged=judged)
    assert (eviction.nodes, eviction.freed) == ([silent], 1)
    assert [await desk.state(one) for one in held] == ["scheduled", "sending"]
    assert set(await desk.ledger.beat(awake, 9, now=NOW)) == {desk.node, awake}
    with pytest.raises(NodeEvicted):
        await desk.ledger.beat(silent, 4, now=NOW)


async def test_without_a_judgement_an_eviction_does_not_ask_for_beats(desk: Desk) -> None:
    other = await desk.new_node()
    await desk.ledger.beat(other, 5, now=NOW)
    assert (await desk.ledger.evict([other], now=NOW, judged={desk.node: 0})).nodes == [other]


async def _die_holding(desk: Desk, held: Delivery, times: int) -> None:
    for _ in range(times):
        await desk.ledger.evict([desk.node], now=NOW)
        desk.node = await desk.new_node()
        await desk.claim(held.lane, due_by=NOW + 60 * SECOND)


async def test_from_the_fifth_time_running_a_freed_delivery_waits_ten_seconds(desk: Desk) -> None:
    held = await desk.hold_one()
    for time in range(1, 7):
        await desk.ledger.evict([desk.node], now=NOW)
        row, _ = await desk.row(held)
        assert (row.freed, row.due_at) == (time, NOW if time < 5 else NOW + 10 * SECOND)
        desk.node = await desk.new_node()
        assert len(await desk.claim(due_by=NOW + 60 * SECOND)) == 1


async def test_a_freed_delivery_that_is_due_later_still_is_not_pulled_forward(desk: Desk) -> None:
    held = await desk.hold_one(due_at=NOW + 60 * SECOND)
    await _die_holding(desk, held, 6)
    row, _ = await desk.row(held)
    assert (row.freed, row.due_at) == (6, NOW + 60 * SECOND)


async def test_a_recorded_attempt_ends_the_run_of_deaths(desk: Desk) -> None:
    held = await desk.hold_one()
    await _die_holding(desk, held, 3)
    (row, _) = await desk.row(held)
    await desk.record(desk.make.failed(row, due_at=NOW))
    row, _ = await desk.row(held)
    assert row.freed == 0


async def test_interrupted_entries_stand_before_the_attempt_of_the_same_number(desk: Desk) -> None:
    held = await desk.hold_one()
    await _die_holding(desk, held, 2)
    (row, _) = await desk.row(held)
    await desk.record(desk.make.failed(row, due_at=NOW + SECOND))
    (second,) = await desk.claim(1, due_by=NOW + SECOND)
    await desk.record(desk.make.delivered(second))
    kinds = [("interrupted", 1), ("interrupted", 1), ("attempt", 1), ("attempt", 2)]
    assert await desk.kinds(held) == kinds
    assert (await desk.ledger.delivery(held.id)).attempts == 2


async def test_held_lists_what_the_book_says_a_node_holds_oldest_first(desk: Desk) -> None:
    other = await desk.new_node()
    held = [await desk.hold_one() for _ in range(3)]
    await desk.publish_one(held=True, node=other)
    await desk.publish_one()
    assert await desk.ledger.held(desk.node, limit=ALL) == [one.id for one in held]
    assert await desk.ledger.held(desk.node, limit=2) == [one.id for one in held[:2]]
    assert await desk.ledger.held_count(desk.node) == 3
    assert await desk.ledger.held_count(desk.make.id()) == 0


async def test_forgotten_rows_are_freed_like_an_eviction_of_these_rows_alone(desk: Desk) -> None:
    forgotten, kept = await desk.hold_one(), await desk.hold_one()
    other = await desk.new_node()
    theirs = await desk.publish_one(held=True, node=other)
    await desk.ledger.free([forgotten.id, theirs.id, desk.make.id()], node=desk.node, now=NOW + SECOND)
    assert [await desk.state(one) for one in (forgotten, kept, theirs)] == ["scheduled", "sending", "sending"]
    assert await desk.kinds(forgotten) == [("interrupted", 1)]
    assert await desk.kinds(theirs) == []
    row, _ = await desk.row(forgotten)
    assert row.freed == 1


async def test_the_result_of_a_freed_row_comes_too_late(desk: Desk) -> None:
    held = await desk.hold_one()
    await desk.ledger.free([held.id], node=desk.node, now=NOW)
    answer = await desk.record(desk.make.delivered(held))
    assert answer.lost == [held.id]
    assert await desk.state(held) == "scheduled"
