"""Calls made at the same time: each gets its own answer, as if they had come one after another."""

from __future__ import annotations

import asyncio
from typing import Any

from surehook.core.errors import NodeEvicted
from surehook.ports.ledger import AcceptResult

from .desk import ALL, Desk
from .making import NOW


async def _accept(
    desk: Desk, *items: Any, node: bytes | None = None, version: int | None = None
) -> AcceptResult:
    version = await desk.ledger.version() if version is None else version
    return await desk.ledger.accept(items, node=node or desk.node, version=version, now=NOW)


async def test_many_batches_at_once_are_all_written(desk: Desk) -> None:
    items = [desk.make.incoming(desk.endpoint) for _ in range(50)]
    results = await asyncio.gather(*(_accept(desk, item) for item in items))
    assert [result.taken[0].event for result in results] == [item.event.id for item in items]
    assert all(result.taken[0].fresh for result in results)
    assert len(await desk.claim()) == 50


async def test_of_the_same_key_at_once_one_is_fresh(desk: Desk) -> None:
    items = [desk.make.incoming(desk.endpoint, key="k") for _ in range(20)]
    results = await asyncio.gather(*(_accept(desk, item) for item in items))
    taken = [result.taken[0] for result in results]
    assert sum(one.fresh for one in taken) == 1
    assert len({one.event for one in taken}) == 1
    assert len(await desk.claim()) == 1


async def test_of_the_same_id_at_once_one_is_fresh(desk: Desk) -> None:
    first = desk.make.incoming(desk.endpoint, given=True)
    again = [desk.make.incoming(desk.endpoint, given=True, event={"id": first.event.id}) for _ in range(20)]
    results = await asyncio.gather(*(_accept(desk, item) for item in (first, *again)))
    assert sum(result.taken[0].fresh for result in results) == 1
    assert len(await desk.claim()) == 1


async def test_claims_at_once_share_the_rows(desk: Desk) -> None:
    other = await desk.new_node()
    deliveries = [await desk.publish_one() for _ in range(30)]
    nodes = [desk.node, other] * 5
    claims = await asyncio.gather(*(desk.claim(limit=4, node=node) for node in nodes))
    assert sorted(one.id for claimed in claims for one in claimed) == [one.id for one in deliveries]
    assert max(len(claimed) for claimed in claims) == 4


async def test_one_call_that_fails_takes_no_other_with_it(desk: Desk) -> None:
    """An evicted node, a stale fan-out and a row that cannot be stored stand between good ones in the line."""
    evicted = await desk.new_node()
    await desk.ledger.evict([evicted], now=NOW)
    done, waiting = await desk.hold_one(), await desk.hold_one()
    good = [desk.make.incoming(desk.endpoint) for _ in range(4)]
    bad = desk.make.incoming(desk.endpoint, event={"subject": "\ud800"})
    answers: list[Any] = await asyncio.gather(
        _accept(desk, good[0]),
        _accept(desk, desk.make.incoming(desk.endpoint), node=evicted),
        _accept(desk, good[1]),
        desk.record(desk.make.delivered(done)),
        _accept(desk, bad, good[2]),
        desk.record(desk.make.delivered(waiting), node=evicted),
        _accept(desk, desk.make.incoming(desk.endpoint), version=-1),
        desk.record(desk.make.failed(waiting, due_at=NOW)),
        _accept(desk, good[3]),
        return_exceptions=True,
    )
    assert [type(answers[place]) for place in (1, 5)] == [NodeEvicted, NodeEvicted]
    assert [answers[place].taken[0].fresh for place in (0, 2, 8)] == [True] * 3
    assert [taken.problem for taken in answers[4].taken] == ["unstorable", None]
    assert answers[6].stale
    assert [answers[place].lost for place in (3, 7)] == [[], []]
    assert [await desk.state(one) for one in (done, waiting)] == ["delivered", "retrying"]
    assert {one.event for one in await desk.claim()} == {item.event.id for item in good}


async def test_changes_at_once_have_a_version_and_a_note_each(desk: Desk) -> None:
    """Of one row and of several, by one statement and by many."""
    others = [await desk.new_endpoint() for _ in range(3)]
    since = await desk.ledger.version()
    calls: list[Any] = []
    for number in range(8):
        of_one = {"failure_count": number, "url": f"https://{number}.example/"}
        calls.append(desk.ledger.change_endpoint(desk.endpoint, of_one, now=NOW))
        calls.append(desk.ledger.change_endpoint(others[number % 3], {"status": "paused"}, now=NOW))
        calls.append(desk.ledger.rotate_secret(desk.make.secret(desk.endpoint), old_expires_at=NOW))
    answers = await asyncio.gather(*calls)
    assert await desk.ledger.version() == since + len(calls)
    for number, answer in enumerate(answers[::3]):
        assert (answer.failure_count, answer.url) == (number, f"https://{number}.example/")
    found = await desk.ledger.changes(since, limit=ALL)
    assert found is not None and found.version == since + len(calls)
    assert {one.id for one in found.rows.endpoints} == {desk.endpoint, *others}


async def test_a_caller_that_is_cancelled_leaves_whole_calls(desk: Desk) -> None:
    """Whether its call was carried out is open; what it left is all of it or nothing, and others are well."""
    batches = [[desk.make.incoming(desk.endpoint, held=True) for _ in range(2)] for _ in range(20)]
    version = await desk.ledger.version()
    tasks = [asyncio.create_task(_accept(desk, *batch, version=version)) for batch in batches]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for place, batch in enumerate(batches):
        states = {await desk.state(item.deliveries[0]) for item in batch}
        assert states in ([{"sending"}] if place % 2 else [{"sending"}, {None}])
    held = set(await desk.ledger.held(desk.node, limit=ALL))
    assert held <= {item.deliveries[0].id for batch in batches for item in batch}


async def test_what_was_answered_is_seen_by_the_next_look(desk: Desk) -> None:
    for _ in range(20):
        delivery = await desk.publish_one()
        assert await desk.state(delivery) == "scheduled"
        assert await desk.ledger.next_due(0) == NOW
        await desk.claim()
        assert await desk.state(delivery) == "sending"
