"""Transactions: how many steps they take, who shares one, and what a failed one means."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from surehook.core.errors import LedgerBroken, LedgerUnavailable
from surehook.ledgers.sqlite import SqliteLedger
from surehook.ledgers.sqlite.ledger import LARGE_FAN_OUT
from surehook.ledgers.sqlite.workers import JOINED_MAX, PASSED_MOST
from surehook.ports.ledger import Incoming
from tests.ledgers.desk import Desk
from tests.ledgers.making import NOW
from tests.ledgers.sqlite.watching import WatchedDriver


async def test_the_steps_of_hot_calls_do_not_grow_with_the_batch(desk: Desk, driver: WatchedDriver) -> None:
    steps = {}
    for size in (2, 400):
        items = [desk.make.incoming(desk.endpoint, held=True) for _ in range(size)]
        waiting = [desk.make.incoming(desk.endpoint) for _ in range(size)]
        version = await desk.ledger.version()
        driver.ran.clear()
        await desk.ledger.accept(items, node=desk.node, version=version, now=NOW)
        accept = len(driver.ran)
        driver.ran.clear()
        await desk.record(*(desk.make.delivered(item.deliveries[0]) for item in items))
        record = len(driver.ran)
        await desk.accept(*waiting)
        driver.ran.clear()
        claimed = await desk.claim(limit=size)
        claim = len(driver.ran)
        driver.ran.clear()
        await desk.record(*(desk.make.failed(one, due_at=NOW) for one in claimed))
        steps[size] = (accept, record, claim, len(driver.ran))
    accept, record, claim, again = steps[400]
    assert steps[400][:2] == steps[2][:2]
    assert (accept, record, again) == (5, 5, 5)
    assert claim <= 12  # bodies are read 64 at a time, which bounds the packed row


async def test_what_can_wait_is_passed_by_everybody_else_and_not_for_ever(desk: Desk) -> None:
    go = threading.Event()
    blocked = asyncio.ensure_future(desk.ledger._write(lambda session: go.wait(5)))
    done: list[str] = []
    bulk = asyncio.ensure_future(desk.ledger._later(lambda session: done.append("bulk")))
    calls = [asyncio.ensure_future(desk.ledger._write(lambda session: done.append("call"))) for _ in range(3)]
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(blocked, bulk, *calls)
    assert done == ["call", "call", "call", "bulk"]
    go.clear()
    done.clear()
    blocked = asyncio.ensure_future(desk.ledger._write(lambda session: go.wait(5)))
    bulk = asyncio.ensure_future(desk.ledger._later(lambda session: done.append("bulk")))
    calls = [
        asyncio.ensure_future(desk.ledger._write(lambda session: done.append("call"))) for _ in range(20)
    ]
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(blocked, bulk, *calls)
    assert done.index("bulk") <= PASSED_MOST + 1


@pytest.mark.parametrize("rows", [2, LARGE_FAN_OUT])
async def test_a_publish_goes_before_an_event_for_thousands(
    desk: Desk, driver: WatchedDriver, rows: int
) -> None:
    """Whatever is small shares a commit instead."""
    (large, small) = (desk.make.incoming(*[desk.endpoint] * count) for count in (rows, 1))
    version = await desk.ledger.version()
    go = threading.Event()
    blocked = asyncio.ensure_future(desk.ledger._write(lambda session: go.wait(5)))
    order: list[bytes] = []

    async def accept(item: Incoming) -> None:
        await desk.ledger.accept([item], node=desk.node, version=version, now=NOW)
        order.append(item.event.id)

    calls = [asyncio.ensure_future(accept(item)) for item in (large, small)]
    await asyncio.sleep(0)
    driver.ran.clear()
    go.set()
    await asyncio.gather(blocked, *calls)
    is_large = rows == LARGE_FAN_OUT
    assert order == ([small.event.id, large.event.id] if is_large else [large.event.id, small.event.id])
    assert driver.ran.count("commit") == (2 if is_large else 1)


async def hold_up(desk: Desk) -> tuple[threading.Event, asyncio.Future[object]]:
    """The writer is in the middle of something, until the event is set."""
    begun, go = threading.Event(), threading.Event()

    def work(session: object) -> None:
        begun.set()
        go.wait(5)

    blocked = asyncio.ensure_future(desk.ledger._write(work))
    assert await asyncio.to_thread(begun.wait, 5)
    return go, blocked


async def test_a_quick_publish_goes_before_others_and_alone(desk: Desk, driver: WatchedDriver) -> None:
    items = [desk.make.incoming(desk.endpoint) for _ in range(6)]
    version = await desk.ledger.version()
    order: list[int] = []

    async def accept(number: int, *, is_quick: bool) -> None:
        await desk.ledger.accept([items[number]], node=desk.node, version=version, now=NOW, is_quick=is_quick)
        order.append(number)

    go, blocked = await hold_up(desk)
    calls = [asyncio.ensure_future(accept(number, is_quick=number in (2, 4))) for number in range(6)]
    await asyncio.sleep(0)
    driver.ran.clear()
    go.set()
    await asyncio.gather(blocked, *calls)
    assert order == [2, 4, 0, 1, 3, 5]
    assert driver.ran.count("commit") == 5, (
        "the quick ones share a transaction, and then nobody does for a while"
    )


async def test_quick_publishes_pass_others_so_many_times_and_no_more(desk: Desk) -> None:
    done: list[str] = []
    add, write = desk.ledger._add_quickly, desk.ledger._write
    go, blocked = await hold_up(desk)
    calls = [asyncio.ensure_future(write(lambda session: done.append("call")))]
    calls += [
        asyncio.ensure_future(add(lambda session: done.append("quick")))
        for _ in range((PASSED_MOST + 2) * JOINED_MAX)
    ]
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(blocked, *calls)
    assert done.index("call") == PASSED_MOST * JOINED_MAX


async def test_neighbours_in_the_line_share_one_commit(desk: Desk, driver: WatchedDriver) -> None:
    items = [desk.make.incoming(desk.endpoint) for _ in range(JOINED_MAX)]
    version = await desk.ledger.version()
    go = threading.Event()
    blocked = asyncio.ensure_future(desk.ledger._write(lambda session: go.wait(5)))
    calls = [
        asyncio.ensure_future(desk.ledger.accept([item], node=desk.node, version=version, now=NOW))
        for item in items
    ]
    await asyncio.sleep(0)
    driver.ran.clear()
    go.set()
    await asyncio.gather(blocked, *calls)
    assert driver.ran.count("commit") == 1
    assert len(await desk.claim()) == JOINED_MAX


async def test_a_failed_commit_breaks_the_handle_for_good(desk: Desk, driver: WatchedDriver) -> None:
    driver.fails_commits = True
    with pytest.raises(LedgerBroken, match="commit failed"):
        await desk.publish()
    driver.fails_commits = False
    driver.ran.clear()
    with pytest.raises(LedgerBroken, match="commit failed"):
        await desk.ledger.beat(desk.node, 1, now=NOW)
    await desk.ledger.close()
    assert driver.ran == []
    assert driver.closed == 3  # those that read: closing the broken one would write the log into the file


async def test_a_file_that_another_process_writes_is_unavailable(desk: Desk, tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "book.db", isolation_level=None)
    other.execute("begin immediate")
    with pytest.raises(LedgerUnavailable) as caught:
        await desk.ledger.beat(desk.node, 1, now=NOW)
    assert not isinstance(caught.value, LedgerBroken)
    other.execute("rollback")
    other.close()
    await desk.ledger.beat(desk.node, 1, now=NOW)


async def test_a_stopped_line_has_answered_everybody(desk: Desk, book: SqliteLedger) -> None:
    beats = [asyncio.ensure_future(book.beat(desk.node, count, now=NOW)) for count in range(20)]
    await asyncio.sleep(0)
    await book.close()
    assert [desk.node in answer for answer in await asyncio.gather(*beats)] == [True] * 20


async def test_a_row_that_was_settled_twice_is_written_once(desk: Desk) -> None:
    delivery, other = await desk.hold_one(), await desk.hold_one()
    recorded = await desk.record(
        desk.make.delivered(delivery), desk.make.dead(delivery), desk.make.delivered(other)
    )
    assert recorded.lost == [delivery.id]
    assert await desk.state(delivery) == "delivered"
    assert await desk.state(other) == "delivered"
