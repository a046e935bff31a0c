"""Whatever comes to lie behind a mark is found soon, however slow anything was. The clock is handed in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from surehook.core.model import FIRST, Delivery
from surehook.delivery.settings import EngineSettings
from surehook.ledgers.postgres import lookback
from surehook.ledgers.postgres.claim import Parked, _Position
from surehook.ledgers.postgres.ledger import PostgresLedger
from surehook.ledgers.postgres.lookback import AGAIN_S, MOST_S, SLOW_S, LookBack
from surehook.ledgers.postgres.marks import SLACK_MS, Marks
from surehook.ledgers.postgres.under_way import UnderWay
from tests.ledgers.desk import Desk
from tests.ledgers.making import NOW, Maker
from tests.ledgers.postgres.beside import Ticks, opened

LONG_AGO = NOW - 60_000  # behind every mark


@pytest.fixture
def book(place: str, runner: asyncio.Runner, ticks: Ticks) -> Iterator[PostgresLedger]:
    with opened(place, runner, clock=ticks) as ledger:
        yield ledger


# -- the rule --------------------------------------------------------------------------------------------


def test_a_walk_looks_back_again_by_how_far_it_was_and_never_by_how_long_it_took(ticks: Ticks) -> None:
    look_back = LookBack(ticks)
    assert look_back.begin()
    ticks.now += 3600
    look_back.ended(10)
    assert not look_back.begin()
    look_back.ended(10)
    ticks.now += AGAIN_S
    assert look_back.begin()
    look_back.ended(int(2 * lookback.ENTRIES_PER_S))
    assert look_back.is_far
    ticks.now += 1.9
    assert not look_back.begin()
    look_back.ended(0)
    ticks.now += 0.1
    assert look_back.begin()
    look_back.ended(10**9)
    ticks.now += MOST_S
    assert look_back.begin()


def test_a_slow_walk_and_a_failed_one_make_the_next_look_back(ticks: Ticks) -> None:
    look_back = LookBack(ticks)
    look_back.begin()
    look_back.ended(10**9)
    assert not look_back.begin()
    ticks.now += SLOW_S
    look_back.ended(0)
    assert look_back.begin(), "the server stood still"
    look_back.ended(10**9)
    assert not look_back.begin()
    assert look_back.begin(), "the one before never ended"


def test_a_mark_that_is_lowered_while_a_claim_is_under_way_stays_low(ticks: Ticks) -> None:
    """What a rescue had freed meanwhile was passed over: the claim, which had gone by, raised the mark again."""
    marks = Marks(ticks)
    bounds: dict[str, Any] = {"walked": 0, "limit": 9, "size": 9, "due_by": NOW, "now": NOW}
    marks.begin(FIRST)
    marks.ended(FIRST, [], **bounds)
    marks.begin(FIRST)
    marks.lower(LONG_AGO)
    marks.ended(FIRST, [], **bounds)
    assert marks.begin(FIRST) == LONG_AGO
    marks.ended(FIRST, [], **bounds)
    assert marks.begin(FIRST) == NOW - SLACK_MS, "that claim has looked there"


# -- claims, taking back, sweeps --------------------------------------------------------------------------


async def test_what_a_slow_commit_left_behind_the_mark_is_claimed_at_the_next_poll(
    desk: Desk, other: Desk, ticks: Ticks
) -> None:
    ticks.slow = 6.0  # each call, as beside a disk that stands still
    assert await desk.claim() == []
    assert await desk.claim() == []
    ticks.slow = 0.0
    await other.publish_one(at=LONG_AGO, now=LONG_AGO)
    ticks.now += AGAIN_S
    assert len(await desk.claim()) == 1


async def test_what_is_parked_behind_where_taking_back_stands_is_taken_back_although_the_ledger_was_slow(
    desk: Desk, other: Desk, ticks: Ticks
) -> None:
    async def take(limit: int) -> int:
        return len(await desk.ledger.unpark(desk.endpoint, ["share"], node=desk.node, limit=limit, now=NOW))

    for _ in range(6):
        await desk.publish_one(parked="share")
    ticks.slow = 6.0
    assert await take(2) == 2
    assert await take(2) == 2
    ticks.slow = 0.0
    late = await other.publish_one(parked="share", at=LONG_AGO, now=LONG_AGO)
    ticks.now += AGAIN_S
    taken = await desk.ledger.unpark(desk.endpoint, ["share"], node=desk.node, limit=1, now=NOW)
    assert [row.id for row in taken] == [late.id]


async def test_what_others_parked_behind_where_taking_back_stands_is_found_by_the_next_ten_second_look(
    desk: Desk, other: Desk, ticks: Ticks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However far a look back is: nobody tells of what is parked."""
    monkeypatch.setattr(lookback, "FAR_ENTRIES", -1)

    async def take() -> list[bytes]:
        rows = await desk.ledger.unpark(desk.endpoint, ["share"], node=desk.node, limit=5, now=NOW)
        return [row.id for row in rows]

    await desk.publish_one(parked="share", at=LONG_AGO, now=LONG_AGO)
    assert len(await take()) == 1
    (place,) = desk.ledger._parked._positions.values()  # it stands beyond what was parked
    place.look_back.ended(10**9)
    late = await other.publish_one(parked="share", at=LONG_AGO, now=LONG_AGO)
    ticks.now += AGAIN_S
    assert await take() == [], "a signal finds what is new, and goes no further back"
    ticks.now += EngineSettings().look_s - AGAIN_S
    assert await take() == [late.id]


async def test_what_a_slow_commit_left_is_swept_at_the_next_rounds(
    desk: Desk, other: Desk, ticks: Ticks
) -> None:
    await desk.ledger.prepare_handing()

    async def sweep() -> Any:
        return await desk.ledger.hand_over(FIRST, node=desk.node, limit=10, due_by=NOW, now=NOW)

    ticks.slow = 6.0
    assert await sweep() == []
    assert await sweep() == []
    ticks.slow = 0.0
    late = await other.publish_one(at=LONG_AGO, now=LONG_AGO)
    ticks.now += AGAIN_S
    assert await sweep() == [late.id]


@pytest.mark.parametrize("walk", ["claim", "sweep"])
async def test_how_far_a_look_back_was_is_told_by_the_entries_that_it_walked_over(
    walk: str, desk: Desk, other: Desk, ticks: Ticks, beside: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While somebody holds a snapshot, every row that was taken is walked over."""
    monkeypatch.setattr(lookback, "ENTRIES_PER_S", 1)
    # Transactions of the server's other databases, where tests run beside, end too, and are looked after.
    monkeypatch.setattr(UnderWay, "saw", lambda self, snapshot, place: [])
    await desk.ledger.prepare_handing()

    async def take() -> int:
        if walk == "claim":
            return len(await desk.claim())
        return len(await desk.ledger.hand_over(FIRST, node=desk.node, limit=100, due_by=NOW, now=NOW) or [])

    for _ in range(12):
        await desk.publish_one(at=LONG_AGO, now=LONG_AGO)
    await beside.execute("begin isolation level repeatable read; select count(*) from delivery")
    assert await take() == 12
    ticks.now += MOST_S
    assert await take() == 0, "over twelve entries of rows that are taken"
    await other.publish_one(at=LONG_AGO, now=LONG_AGO)
    ticks.now += 10
    assert await take() == 0, "it does not look back yet"
    ticks.now += MOST_S - 10
    assert await take() == 1
    await beside.execute("rollback")


async def test_what_nobody_asks_for_any_more_is_forgotten_once_it_would_be_looked_at_anew(
    desk: Desk, ticks: Ticks
) -> None:
    async def take(endpoint: bytes) -> None:
        await desk.ledger.unpark(endpoint, ["share"], node=desk.node, limit=1, now=NOW)

    places = desk.ledger._parked._positions
    for _ in range(5):
        await take((await desk.publish_one(await desk.new_endpoint(), parked="share")).endpoint)
    assert len(places) == 5
    ticks.now += lookback.PARKED_MOST_S
    await take(desk.endpoint)
    assert not places


async def test_a_place_is_kept_while_its_call_is_under_way(desk: Desk, ticks: Ticks) -> None:
    parked = desk.ledger._parked
    place = parked._position((b"a", ("share",)))
    place.look_back.begin(anyhow=True)
    ticks.now += lookback.AGAIN_S
    parked._position((b"b", ("share",)))
    assert parked._positions[b"a", ("share",)] is place


async def test_parking_looks_at_each_row_as_often_whatever_marks_there_are() -> None:
    """On the event loop, and an endpoint with a large backlog has a mark."""

    class Rows(list[Delivery]):
        """Counts how often they are gone through."""

        walks = 0

        def __iter__(self) -> Iterator[Delivery]:
            self.walks += 1
            return super().__iter__()

    async def change(sql: str, *parameters: Any) -> list[tuple[int]]:
        return [(1,)]

    async def walks(marks: int) -> int:
        parked = Parked(Ticks())
        for number in range(marks):
            parked._positions[b"%016d" % number, ("share",)] = _Position(LookBack(Ticks()))
        make = Maker()
        rows = Rows([make.delivery(make.event(), b"%016d" % 1)])
        await parked.park(SimpleNamespace(change=change), rows, "share", node=b"n", now=NOW)  # type: ignore[arg-type]
        return rows.walks

    assert await walks(marks=1_000) == await walks(marks=0)
