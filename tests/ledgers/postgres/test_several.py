"""Several nodes on one book, each with connections of its own: what the database keeps apart for them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from surehook.core.errors import LedgerUnavailable, NodeEvicted
from surehook.core.model import Delivery, EndpointHealth
from surehook.ledgers.postgres import lookback
from surehook.ledgers.postgres.ledger import PostgresLedger
from surehook.ports.ledger import AcceptResult, Eviction, Incoming
from tests.ledgers.desk import ALL, Desk
from tests.ledgers.making import NOW

# What a transaction has once seen of other sessions it sees again, unless it asks anew.
WAITING = """
    select count(*) from pg_stat_clear_snapshot(), pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'
"""


@pytest.fixture
def other(place: str, desk: Desk, runner: asyncio.Runner) -> Iterator[Desk]:
    """A second process's ledger on the same book, with a node of its own."""
    ledger = PostgresLedger(place)
    runner.run(ledger.open(now=NOW))
    second = Desk(ledger, desk.make)
    second.endpoint = desk.endpoint
    second.node = runner.run(second.new_node())
    yield second
    runner.run(ledger.close())


async def _accept(desk: Desk, *items: Any) -> AcceptResult:
    return await desk.ledger.accept(items, node=desk.node, version=await desk.ledger.version(), now=NOW)


async def test_two_nodes_that_claim_at_once_get_each_row_once(desk: Desk, other: Desk) -> None:
    items = [desk.make.incoming(desk.endpoint) for _ in range(400)]
    await _accept(desk, *items)

    async def drain(one: Desk, got: list[Delivery]) -> list[Delivery]:
        while rows := await one.claim(limit=30):
            got += rows
        return got

    # Both have begun before one of them can have taken all.
    begun = await asyncio.gather(desk.claim(limit=30), other.claim(limit=30))
    first, second = await asyncio.gather(drain(desk, begun[0]), drain(other, begun[1]))
    assert first
    assert second
    ids = [row.id for row in first + second]
    assert sorted(ids) == sorted(item.deliveries[0].id for item in items)
    for one, rows in ((desk, first), (other, second)):
        assert await desk.ledger.held_count(one.node) == len(rows)


async def test_what_an_evicted_node_had_sent_writes_nothing_once_another_holds_it(
    desk: Desk, other: Desk
) -> None:
    """A node that was frozen while its work was given away wakes up and records."""
    held = [await desk.hold_one() for _ in range(3)]
    assert (await other.ledger.evict([desk.node], now=NOW)).freed == 3
    theirs = await other.claim()
    assert {row.id for row in theirs} == {row.id for row in held}
    for call in (
        desk.record(*[desk.make.delivered(row) for row in held]),
        desk.ledger.park(held, "breaker", node=desk.node, now=NOW),
        desk.ledger.release(held, node=desk.node, now=NOW),
        desk.claim(),
    ):
        with pytest.raises(NodeEvicted):
            await call
    assert [await desk.kinds(row) for row in held] == [[("interrupted", 1)]] * 3
    assert await other.ledger.held_count(other.node) == 3
    assert (await other.record(*[desk.make.delivered(row) for row in theirs])).lost == []


async def test_an_eviction_waits_for_what_the_node_is_writing(desk: Desk, other: Desk, beside: Any) -> None:
    """The node's transaction has passed the fence and not yet committed: its result holds, and nothing is freed."""
    held = await desk.hold_one()
    await beside.execute("begin")
    await beside.execute("select from delivery where id = $1 for update", held.id)
    recording = asyncio.ensure_future(desk.record(desk.make.delivered(held)))
    await _until_someone_waits(beside, 1)
    evicting = asyncio.ensure_future(other.ledger.evict([desk.node], now=NOW))
    await _until_someone_waits(beside, 2)
    await beside.execute("commit")
    assert (await recording).lost == []
    assert (await evicting).freed == 0
    assert await desk.kinds(held) == [("attempt", 1)]


async def test_a_node_accepts_nothing_after_its_eviction_has_begun(
    desk: Desk, other: Desk, beside: Any
) -> None:
    """Eviction holds the node's row and has not committed: whoever comes to the fence waits, and fails whole."""
    await beside.execute("begin")
    await beside.execute("update node set buried_at = $1 where id = $2", NOW, desk.node)
    item = desk.make.incoming(desk.endpoint, held=True)
    accepting = asyncio.ensure_future(_accept(desk, item))
    await _until_someone_waits(beside, 1)
    await beside.execute("commit")
    with pytest.raises(NodeEvicted):
        await accepting
    assert await other.ledger.event(item.event.id) is None


async def test_a_beat_that_meets_an_eviction_waits_and_hears_of_it(
    desk: Desk, other: Desk, beside: Any
) -> None:
    """The eviction has judged and not committed: a beat that only looked at what was committed would renew the lease."""
    await desk.ledger.beat(desk.node, 1, now=NOW)
    await beside.execute("begin")
    await beside.execute("select from node where id = $1 for share", desk.node)  # as a node that is recording
    evicting = asyncio.ensure_future(other.ledger.evict([desk.node], now=NOW, judged={desk.node: 1}))
    await _until_someone_waits(beside, 1)
    beating = asyncio.ensure_future(desk.ledger.beat(desk.node, 2, now=NOW))
    await _until_someone_waits(beside, 2)
    await beside.execute("commit")
    assert (await evicting).nodes == [desk.node]
    with pytest.raises(NodeEvicted):
        await beating


async def test_an_eviction_that_meets_a_beat_waits_and_leaves_the_node_alone(
    desk: Desk, other: Desk, beside: Any
) -> None:
    await desk.ledger.beat(desk.node, 1, now=NOW)
    held = await desk.hold_one()
    await beside.execute("begin")
    await beside.execute("update beat set counter = 2 where node = $1", desk.node)
    evicting = asyncio.ensure_future(other.ledger.evict([desk.node], now=NOW, judged={desk.node: 1}))
    await _until_someone_waits(beside, 1)
    await beside.execute("commit")
    assert await evicting == Eviction([], 0)
    assert await desk.state(held) == "sending"


async def test_of_the_same_key_from_two_nodes_at_once_one_is_fresh(desk: Desk, other: Desk) -> None:
    for round in range(10):
        items = [desk.make.incoming(desk.endpoint, key=f"k{round}") for _ in range(8)]
        results = await asyncio.gather(
            *(_accept(desk if n % 2 else other, item) for n, item in enumerate(items))
        )
        taken = [result.taken[0] for result in results]
        assert sum(one.fresh for one in taken) == 1
        assert len({one.event for one in taken}) == 1
    assert len(await desk.claim()) == 10


async def test_of_the_same_id_from_two_nodes_at_once_one_is_fresh(desk: Desk, other: Desk) -> None:
    for _ in range(10):
        first = desk.make.incoming(desk.endpoint, given=True)
        items = [first] + [
            desk.make.incoming(desk.endpoint, given=True, event={"id": first.event.id}) for _ in range(7)
        ]
        results = await asyncio.gather(
            *(_accept(desk if n % 2 else other, item) for n, item in enumerate(items))
        )
        assert sum(result.taken[0].fresh for result in results) == 1
    assert len(await desk.claim()) == 10


async def test_batches_with_the_same_keys_in_any_order_never_deadlock(desk: Desk, other: Desk) -> None:
    """Eight batches of the same forty keys, each in another order, from two nodes: nobody is refused."""
    keys = [f"key {n}" for n in range(40)]

    async def publish(one: Desk, turn: int) -> AcceptResult:
        mine = keys[turn * 5 :] + keys[: turn * 5]
        return await _accept(one, *(desk.make.incoming(desk.endpoint, key=key) for key in mine))

    for _ in range(3):
        results = await asyncio.gather(*(publish(desk if n % 2 else other, n) for n in range(8)))
        problems = [taken.problem for result in results for taken in result.taken]
        assert not any(problems)
    assert len(await desk.claim()) == 40


async def test_windows_about_the_same_endpoints_in_any_order_never_deadlock(desk: Desk, other: Desk) -> None:
    endpoints = [await desk.new_endpoint() for _ in range(12)]

    def health(turn: int) -> list[EndpointHealth]:
        order = endpoints[turn:] + endpoints[:turn]
        return [EndpointHealth(one, succeeded=False, failures=1, limit=None) for one in order]

    await asyncio.gather(*((desk if n % 2 else other).record(health=health(n)) for n in range(12)))
    counts = {(await desk.ledger.endpoint(one)).failure_count for one in endpoints}
    assert counts == {12}


async def test_a_window_that_switches_an_endpoint_off_locks_in_the_order_of_management(
    desk: Desk, place: str
) -> None:
    """A change holds the configuration's row and wants its endpoint's: the window waits without holding that."""
    management = await asyncpg.connect(place)
    change = management.transaction()
    await change.start()
    await management.execute("select version from configuration for no key update")
    gone = EndpointHealth(
        desk.endpoint, succeeded=False, failures=1, limit=None, status="inactive", reason="gone"
    )
    window = asyncio.create_task(desk.record(health=[gone]))
    while not await management.fetchval("select exists (select from pg_locks where not granted)"):
        pass
    await management.execute("select 1 from endpoint where id = $1 for update nowait", desk.endpoint)
    await change.commit()
    await management.close()
    (changed,) = (await window).changes
    assert changed.status == "inactive"


async def test_two_nodes_that_take_parked_rows_at_once_get_each_once(desk: Desk, other: Desk) -> None:
    items = [desk.make.incoming(desk.endpoint, parked="breaker" if n % 2 else "share") for n in range(60)]
    await _accept(desk, *items)

    async def take(one: Desk) -> list[Delivery]:
        return await one.ledger.unpark(desk.endpoint, ["share", "breaker"], node=one.node, limit=20, now=NOW)

    taken = await asyncio.gather(*(take(desk if n % 2 else other) for n in range(6)))
    taken += [await take(desk) for _ in range(3)]
    ids = [row.id for rows in taken for row in rows]
    assert sorted(ids) == sorted(item.deliveries[0].id for item in items)


async def test_what_others_parked_behind_where_taking_back_stands_is_taken(desk: Desk, other: Desk) -> None:
    items = [desk.make.incoming(desk.endpoint, parked="share") for _ in range(8)]
    ids = [item.deliveries[0].id for item in items]
    assert ids == sorted(ids)

    async def take(limit: int) -> list[bytes]:
        rows = await desk.ledger.unpark(desk.endpoint, ["share"], node=desk.node, limit=limit, now=NOW)
        return [row.id for row in rows]

    await _accept(desk, *items[3:])
    assert await take(3) == ids[3:6]
    await _accept(other, *items[:3])
    found = await take(4)  # what lies ahead is too little
    assert len(found) == 4
    assert sorted(found + await take(4)) == [*ids[:3], *ids[6:]]


async def test_where_the_way_back_is_long_it_is_walked_rarely_and_still_walked(
    desk: Desk, other: Desk, beside: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While somebody holds a snapshot, every row that was taken is walked over."""
    monkeypatch.setattr(lookback, "FAR_ENTRIES", 20)
    long_ago, lately = [
        [desk.make.incoming(desk.endpoint, parked="share", at=NOW + ms) for _ in range(3)]
        for ms in (-9_000, 0)
    ]
    await _accept(
        desk, *(desk.make.incoming(desk.endpoint, parked="share", at=NOW - 9_000) for _ in range(30))
    )
    await beside.execute("begin isolation level repeatable read; select count(*) from delivery")

    async def take(limit: int = 40) -> list[Delivery]:
        return await desk.ledger.unpark(desk.endpoint, ["share"], node=desk.node, limit=limit, now=NOW)

    def ids(items: list[Incoming]) -> list[bytes]:
        return [item.deliveries[0].id for item in items]

    def look_back(at: float) -> None:
        desk.ledger._parked._positions[desk.endpoint, ("share",)].look_back._at = at

    first = await take()
    assert len(first) == 30
    assert await take() == [], "looked back, and over thirty taken rows"
    look_back(at=time.monotonic() + 3600)
    await _accept(other, *long_ago, *lately)
    assert [row.id for row in await take()] == ids(lately), "others lie behind, and it does not look back yet"
    await desk.ledger.park(first[:1], "share", node=desk.node, now=NOW)
    found = await take()
    assert first[0].id in [row.id for row in found], "what it parked itself it finds"
    look_back(at=0.0)
    found += await take()
    assert sorted(row.id for row in found) == sorted([first[0].id, *ids(long_ago)])
    await beside.execute("rollback")


async def test_what_a_node_parks_again_it_takes_back_before_what_is_younger(desk: Desk) -> None:
    items = [desk.make.incoming(desk.endpoint, parked="share") for _ in range(6)]
    await _accept(desk, *items)
    held = await desk.ledger.unpark(desk.endpoint, ["share"], node=desk.node, limit=2, now=NOW)
    await desk.ledger.park(held[:1], "share", node=desk.node, now=NOW)
    again = await desk.ledger.unpark(desk.endpoint, ["share"], node=desk.node, limit=2, now=NOW)
    assert [row.id for row in again] == [items[0].deliveries[0].id, items[2].deliveries[0].id]


async def test_a_node_that_waits_too_long_for_a_lock_is_told_so(desk: Desk, beside: Any) -> None:
    """Somebody else's lock costs this call, and no more: the next one after it goes through."""
    await beside.execute("begin; lock table delivery in exclusive mode")
    asked = asyncio.get_running_loop().time()
    with pytest.raises(LedgerUnavailable):
        await desk.publish_one()
    assert asyncio.get_running_loop().time() - asked < 10
    await beside.execute("rollback")
    await desk.publish_one()
    assert len(await desk.claim(limit=ALL)) == 1


async def _until_someone_waits(beside: Any, count: int) -> None:
    """Until so many sessions of this database wait for a lock."""
    async with asyncio.timeout(20):
        while await beside.fetchval(WAITING) < count:  # noqa: ASYNC110 (the event is the server's)
            await asyncio.sleep(0.01)
