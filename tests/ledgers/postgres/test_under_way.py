"""What a commit brings that stood still is claimed although nobody tells of it, however many gone rows lie before it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from surehook.core.model import FIRST
from surehook.ledgers.postgres.ledger import PostgresLedger
from surehook.ledgers.postgres.under_way import Snapshot, UnderWay, snapshot_of
from surehook.ports.ledger import Skip
from tests.ledgers.desk import ALL, Desk
from tests.ledgers.making import NOW
from tests.ledgers.postgres.beside import Ticks, opened

SOMEBODY = Skip(tenants=("crowd",))


@pytest.fixture
def book(place: str, runner: asyncio.Runner, ticks: Ticks) -> Iterator[PostgresLedger]:
    with opened(place, runner, clock=ticks) as ledger:
        yield ledger


# -- the rule --------------------------------------------------------------------------------------------


def test_a_snapshot_is_read_as_the_server_writes_it() -> None:
    assert snapshot_of("10:12:10,11:12") == Snapshot(10, frozenset((10, 11)), 12)
    assert snapshot_of("7:7::7") == Snapshot(7, frozenset(), 7)
    assert snapshot_of("7:8:7:10") == Snapshot(7, frozenset((7, 8, 9)), 10), "since 8 none has ended"


def test_what_was_under_way_is_looked_for_once_where_walks_stood_before_it_was_seen() -> None:
    seen = UnderWay(0)
    assert seen.saw(snapshot_of("10:10::10"), 1) == []
    assert seen.saw(snapshot_of("11:12:11:12"), 2) == []
    assert seen.saw(snapshot_of("11:13:11:14"), 3) == []
    assert seen.saw(snapshot_of("13:15:13:15"), 4) == [1]
    assert seen.saw(snapshot_of("16:16::16"), 5) == [2]
    assert seen.saw(snapshot_of("17:17::17"), 6) == []


def test_a_walk_that_is_heard_of_late_ends_nothing() -> None:
    seen = UnderWay(0)
    assert seen.saw(snapshot_of("10:10::10"), 1) == []
    assert seen.saw(snapshot_of("12:13:12:14"), 3) == []
    assert seen.saw(snapshot_of("11:11::11"), 2) == []
    assert seen.saw(snapshot_of("13:15:13:15"), 4) == [1]


# -- claims and sweeps -------------------------------------------------------------------------------------


async def claims(desk: Desk, now: int) -> list[bytes]:
    return [row.id for row in await desk.claim(due_by=now)]


async def claims_of_others(desk: Desk, now: int) -> list[bytes]:
    rows = await desk.ledger.claim_others(
        FIRST, node=desk.node, limit=ALL, due_by=now, now=now, skip=SOMEBODY
    )
    return [row.id for row in rows]


async def sweeps(desk: Desk, now: int) -> list[bytes]:
    return await desk.ledger.hand_over(FIRST, node=desk.node, limit=ALL, due_by=now, now=now) or []


@pytest.mark.parametrize("walk", [claims, claims_of_others, sweeps], ids=lambda walk: walk.__name__)
async def test_what_a_commit_brings_that_stood_still_is_found_by_the_second_walk_after_it_without_a_look_back(
    walk: Any, desk: Desk, other: Desk, beside: Any
) -> None:
    await desk.ledger.prepare_handing()
    assert await walk(desk, NOW) == []
    late = await other.publish_one(held=True, now=NOW + 100)
    await beside.execute("begin; update delivery set holder = null")
    for second in range(1, 30):
        assert await walk(desk, NOW + second * 1_000) == []
    await beside.execute("commit")
    desk.ledger._others.passes._lanes[FIRST].began = NOW + 30_000  # so that no pass finds it in its time
    found = [*await walk(desk, NOW + 30_000), *await walk(desk, NOW + 30_020)]
    assert found == [late.id]
