"""Connections that break: what is told, what holds, and that work goes on by itself.

A proxy stands between the ledger and the server. What it cuts off before the server has it (`seen`) was not
written; what it cuts off after (`answered`) was, and nobody was told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from surehook.core.errors import CommitUnknown, LedgerError, LedgerUnavailable
from surehook.core.model import BreakerRow, EndpointHealth
from surehook.ledgers.postgres.ledger import PostgresLedger
from surehook.ports.ledger import AcceptResult, Incoming
from tests.ledgers.desk import Desk
from tests.ledgers.making import NOW
from tests.servers.proxy import CuttingProxy

COMMIT = b"\x0bcommit\x00"  # as a message; other statements have the word in them too
BOTH = pytest.mark.parametrize("when", ["seen", "answered"])


@pytest.fixture
def proxy(place: str) -> Iterator[CuttingProxy]:
    port = urlsplit(place).port
    assert port is not None
    with CuttingProxy(port) as proxy:
        yield proxy


@pytest.fixture
def cut(place: str, proxy: CuttingProxy, desk: Desk, runner: asyncio.Runner) -> Iterator[Desk]:
    """The desk's node and endpoint, by a ledger that reaches the server through the proxy."""
    parts = urlsplit(place)
    through = urlunsplit(parts._replace(netloc=f"postgres@127.0.0.1:{proxy.port}"))
    ledger = PostgresLedger(through)
    runner.run(ledger.open(now=NOW))
    one = Desk(ledger, desk.make)
    one.node, one.endpoint = desk.node, desk.endpoint
    yield one
    runner.run(ledger.close())


async def _accept(desk: Desk, *items: Incoming) -> AcceptResult:
    return await desk.ledger.accept(items, node=desk.node, version=await desk.ledger.version(), now=NOW)


async def _again(call: Callable[[], Awaitable[Any]]) -> Any:
    """The call until the ledger is back, as the engine makes it."""
    async with asyncio.timeout(20):
        while True:
            try:
                return await call()
            except (LedgerUnavailable, CommitUnknown):
                await asyncio.sleep(0.02)


@BOTH
async def test_a_batch_whose_commit_was_lost_is_told_and_counts_as_fresh_again(
    desk: Desk, cut: Desk, proxy: CuttingProxy, when: Any
) -> None:
    items = [
        cut.make.incoming(cut.endpoint),
        cut.make.incoming(cut.endpoint, key="mine"),
        cut.make.incoming(cut.endpoint, given=True),
        cut.make.incoming(cut.endpoint, given=True, key="both"),
    ]
    await _accept(cut, cut.make.incoming())  # the statement is prepared, the connections stand
    proxy.cut_at(items[1].event.id, when=when)
    with pytest.raises(CommitUnknown):
        await _accept(cut, *items)
    assert (await desk.ledger.event(items[0].event.id) is not None) == (when == "answered")
    result = await _again(lambda: _accept(cut, *items))
    assert [taken.fresh for taken in result.taken] == [True] * 4
    assert [taken.event for taken in result.taken] == [item.event.id for item in items]
    assert sorted(row.id for row in await desk.claim()) == sorted(
        delivery.id for item in items for delivery in item.deliveries
    )


async def test_deliveries_that_were_finished_meanwhile_are_not_born_again(
    desk: Desk, cut: Desk, proxy: CuttingProxy
) -> None:
    """The lost batch was born unheld; another node has sent it before the batch is run again."""
    items = [cut.make.incoming(cut.endpoint), cut.make.incoming(cut.endpoint, given=True)]
    await _accept(cut, cut.make.incoming())
    proxy.cut_at(items[0].event.id, when="answered")
    with pytest.raises(CommitUnknown):
        await _accept(cut, *items)
    for row in await desk.claim():
        await desk.record(desk.make.delivered(row))
    result = await _again(lambda: _accept(cut, *items))
    assert [taken.fresh for taken in result.taken] == [True, True]
    assert await desk.claim() == []


@BOTH
async def test_a_window_whose_commit_was_lost_is_written_once(
    desk: Desk, cut: Desk, proxy: CuttingProxy, when: Any
) -> None:
    await cut.record()
    done, failed = await desk.hold_one(), await desk.hold_one()
    settled = [desk.make.delivered(done), desk.make.failed(failed, due_at=NOW)]
    health = [EndpointHealth(desk.endpoint, succeeded=False, failures=1, limit=None)]
    breaker = BreakerRow("acme", "https://receiver.example:443/hook", "open", "failures", NOW, NOW, 1, 1, NOW)
    said = [desk.make.notice()]

    async def record() -> Any:
        return await cut.record(*settled, health=health, breakers=[breaker], notices=said)

    proxy.cut_at(COMMIT, when=when)
    with pytest.raises(CommitUnknown):
        await record()
    again = await _again(record)
    assert again.lost == []
    assert [await desk.kinds(one) for one in (done, failed)] == [[("attempt", 1)]] * 2
    assert (await desk.ledger.endpoint(desk.endpoint)).failure_count == 1
    assert await desk.notice_kinds() == ["delivery.dead"]
    assert await desk.ledger.breakers() == [breaker]


@BOTH
async def test_a_window_of_deliveries_alone_is_written_once_too(
    desk: Desk, cut: Desk, proxy: CuttingProxy, when: Any
) -> None:
    await cut.record(desk.make.delivered(await desk.hold_one()))
    held = await desk.hold_one()
    proxy.cut_at(held.id, when=when)
    with pytest.raises(CommitUnknown):
        await cut.record(desk.make.delivered(held))
    assert (await _again(lambda: cut.record(desk.make.delivered(held)))).lost == []
    assert await desk.kinds(held) == [("attempt", 1)]
    assert await desk.state(held) == "delivered"


async def test_a_window_is_not_taken_for_written_by_another_nodes_line(
    desk: Desk, cut: Desk, proxy: CuttingProxy
) -> None:
    """The commit never arrived, the row was freed and sent by somebody else: this result is lost, and not doubled."""
    await cut.record(desk.make.delivered(await desk.hold_one()))
    held = await desk.hold_one()
    proxy.cut_at(held.id, when="seen")
    with pytest.raises(CommitUnknown):
        await cut.record(desk.make.delivered(held))
    await desk.ledger.free([held.id], node=desk.node, now=NOW)
    (row,) = await desk.claim()
    await desk.record(desk.make.delivered(row, total_us=77))
    assert (await _again(lambda: cut.record(desk.make.delivered(held)))).lost == [held.id]
    assert await desk.kinds(held) == [("interrupted", 1), ("attempt", 1)]


@BOTH
async def test_an_eviction_whose_commit_was_lost_is_run_again(
    desk: Desk, cut: Desk, proxy: CuttingProxy, when: Any
) -> None:
    other = await desk.new_node()
    held = await desk.publish_one(held=True, node=other)
    proxy.cut_at(COMMIT, when=when)
    await _again(lambda: cut.ledger.evict([other], now=NOW))
    assert await desk.state(held) == "scheduled"
    assert await desk.kinds(held) == [("interrupted", 1)]


async def test_an_ending_whose_commit_was_lost_is_known_as_ones_own(
    desk: Desk, cut: Desk, proxy: CuttingProxy
) -> None:
    row = await desk.publish_one()
    proxy.cut_at(COMMIT, when="answered")
    ended = await _again(
        lambda: cut.ledger.end([row], state="cancelled", reason="request", notices=(), now=NOW)
    )
    assert ended == [row.id]


async def test_rows_of_a_claim_that_was_lost_are_held_and_can_be_freed(
    desk: Desk, cut: Desk, proxy: CuttingProxy
) -> None:
    row = await desk.publish_one()
    await cut.ledger.claim_ids([desk.make.id()], node=cut.node, now=NOW)
    proxy.cut_at(row.id, when="answered")
    with pytest.raises(LedgerUnavailable):
        await cut.ledger.claim_ids([row.id], node=cut.node, now=NOW)
    assert await _again(lambda: cut.ledger.held(cut.node, limit=10)) == [row.id]
    await cut.ledger.free([row.id], node=cut.node, now=NOW)
    assert await desk.state(row) == "scheduled"


async def test_a_session_that_the_server_ends_is_made_anew(desk: Desk, beside: Any) -> None:
    """An administrator ends every session: the next calls say so or work, and then everything does."""
    held = await desk.hold_one()
    await beside.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where datname = current_database() and pid <> pg_backend_pid()"
    )
    assert (await _again(lambda: desk.record(desk.make.delivered(held)))).lost == []
    await _again(lambda: desk.ledger.beat(desk.node, 7, now=NOW))
    assert await _again(lambda: desk.state(held)) == "delivered"


async def test_a_server_that_is_away_is_told_at_once_and_found_again(
    desk: Desk, cut: Desk, proxy: CuttingProxy
) -> None:
    await _accept(cut, cut.make.incoming(cut.endpoint))
    proxy.refuse()
    item = cut.make.incoming(cut.endpoint)
    for _ in range(5):
        asked = asyncio.get_running_loop().time()
        with pytest.raises(LedgerUnavailable):
            await cut.ledger.accept([item], node=cut.node, version=1 << 40, now=NOW)
        assert asyncio.get_running_loop().time() - asked < 2
    proxy.accept()
    result = await _again(lambda: _accept(cut, item))
    assert result.taken[0].fresh
    assert len(await desk.claim()) == 2


async def test_a_network_that_says_nothing_any_more_hangs_nobody(cut: Desk, proxy: CuttingProxy) -> None:
    """A statement's deadline is the session's own; the connection is dropped, and its outcome is unknown."""
    await _accept(cut, cut.make.incoming(cut.endpoint))
    for pool in (cut.ledger._accepting, cut.ledger._working):
        for session in pool._sessions:
            session._patience_s = 0.3
    proxy.freeze()
    item = cut.make.incoming(cut.endpoint)
    with pytest.raises(LedgerError):
        await cut.ledger.accept([item], node=cut.node, version=1 << 40, now=NOW)
    proxy.thaw()
    result = await _again(lambda: _accept(cut, item))
    assert result.taken[0].fresh


async def test_a_server_set_to_read_only_takes_nothing_and_says_so(
    desk: Desk, beside: Any, place: str
) -> None:
    name = urlsplit(place).path.lstrip("/")
    await beside.execute(f"alter database {name} set default_transaction_read_only = on")
    await beside.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where datname = current_database() and pid <> pg_backend_pid()"
    )
    item = desk.make.incoming(desk.endpoint)

    async def accept() -> None:
        await desk.ledger.accept([item], node=desk.node, version=1 << 40, now=NOW)

    async with asyncio.timeout(20):
        while True:
            try:
                await accept()
            except CommitUnknown:
                continue
            except LedgerUnavailable as error:
                if isinstance(error.__cause__, asyncpg.ReadOnlySQLTransactionError):
                    break
    await beside.execute("set default_transaction_read_only = off")
    await beside.execute(f"alter database {name} reset default_transaction_read_only")


async def test_a_value_that_the_server_refuses_costs_its_own_event_alone(desk: Desk) -> None:
    """Fifty items, of which two cannot be stored: the others are written, each once."""
    items = [desk.make.incoming(desk.endpoint) for _ in range(50)]
    for bad in (7, 31):
        items[bad] = desk.make.incoming(desk.endpoint, event={"subject": "a\x00b"})
    result = await _accept(desk, *items)
    assert [n for n, taken in enumerate(result.taken) if taken.problem == "unstorable"] == [7, 31]
    assert sum(taken.fresh for taken in result.taken) == 48
    assert len(await desk.claim()) == 48
