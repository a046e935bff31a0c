"""Commits that stand still in a world: what they bring becomes visible late, behind where claims stand."""

from __future__ import annotations

import asyncio

from lab.ledger.ledger import MemoryLedger
from lab.sim import swarm
from lab.sim.marked import MarkedLedger
from lab.sim.run import run
from lab.sim.stalls import Stalls
from lab.sim.transactions import Transactions
from surehook.core.model import FIRST
from surehook.ledgers.postgres.lookback import AGAIN_S
from surehook.ledgers.postgres.under_way import Snapshot
from tests.ledgers.desk import Desk
from tests.ledgers.making import NOW, Maker

LONG_AGO = NOW - 60_000


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def through() -> None:
    """A commit that takes no time."""


async def test_what_becomes_visible_behind_a_mark_is_seen_by_a_look_back() -> None:
    clock = Clock()
    book = MemoryLedger()
    desk = await Desk(MarkedLedger(book, clock=clock, commit=through, gone=0), Maker()).begin()
    assert await desk.claim() == []
    await desk.publish_one(at=LONG_AGO, now=LONG_AGO)
    assert await desk.claim() == []
    assert await desk.ledger.next_due(FIRST) is None
    clock.now += AGAIN_S
    assert len(await desk.claim()) == 1


async def test_a_claim_gives_what_was_there_when_it_began_and_nobody_has_taken_since() -> None:
    clock, book = Clock(), MemoryLedger()
    going_on = asyncio.Event()

    async def commit() -> None:
        await going_on.wait()

    desk = await Desk(MarkedLedger(book, clock=clock, commit=commit, gone=0), Maker()).begin()
    first, second = await desk.publish_one(), await desk.publish_one()
    claiming = asyncio.ensure_future(desk.claim())
    await asyncio.sleep(0)
    await book.claim_ids([first.id], node=await desk.new_node(), now=NOW)
    await desk.publish_one()
    going_on.set()
    assert [row.id for row in await claiming] == [second.id]


def test_a_transaction_sees_which_others_are_under_way() -> None:
    transactions = Transactions()
    with transactions.begin() as first:
        assert first == Snapshot(1, frozenset(), 1)
        with transactions.begin() as second:
            assert second == Snapshot(1, frozenset((1,)), 2)
        with transactions.begin() as third:
            assert third == Snapshot(1, frozenset((1,)), 3)
    with transactions.begin() as last:
        assert last == Snapshot(4, frozenset(), 4)


async def test_what_becomes_visible_behind_a_mark_is_seen_once_its_transaction_is_over() -> None:
    clock, transactions = Clock(), Transactions()
    book = MemoryLedger()
    ledger = MarkedLedger(book, clock=clock, commit=through, gone=0, transactions=transactions)
    desk = await Desk(ledger, Maker()).begin()
    assert await desk.claim() == []
    with transactions.begin():
        assert await desk.claim(due_by=NOW + 1_000) == []
        assert await desk.claim(due_by=NOW + 2_000) == []
        await desk.publish_one(at=NOW + 100, now=NOW + 100)
    assert await desk.claim(due_by=NOW + 3_000) == []
    assert len(await desk.claim(due_by=NOW + 3_000)) == 1


def test_only_time_in_which_commits_go_through_is_counted() -> None:
    stalls = Stalls(spans=((10.0, 6.0), (20.0, 6.0)), publishes=(), slow=(), gone=0, frozen=(), tells=True)
    assert stalls.well_s(1.0, 3.0) == 2.0
    assert stalls.well_s(9.0, 17.0) == 2.0
    assert stalls.well_s(12.0, 14.0) == 0.0
    assert stalls.well_s(15.0, 27.0) == 5.0


def test_some_worlds_of_several_machines_have_nothing_but_commits_that_stand_still() -> None:
    drawn = [swarm.draw(seed, nodes=3) for seed in range(50)]
    having = [options for options in drawn if options.stalls is not None]
    assert any(options.stalls is not None and options.stalls.spans for options in having)
    assert all(options.nodes > 1 and not options.faults and "api" in options.roles for options in having)
    report = run(having[0].seed, nodes=3)
    assert report.finding is None
    assert report.requests > 0
