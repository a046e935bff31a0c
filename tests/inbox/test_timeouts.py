"""Handlers that hang: a coroutine with a bound is cancelled, undone and tried again; its neighbours are as if it were not there."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from sqlalchemy import text

from surehook.core.errors import SettingsError
from surehook.inbox import AsyncInbox, Backoff, Inbox, Rules
from surehook.inbox.sql import interrupting
from tests.budget import every

HANGS_S = 0.05
INSERT = text("insert into effects (event_id) values (:id)")
NEXT = " s: give what it waits for a timeout of its own, or the handler more time (timeout_s= of on, or of Rules)"
WAITS = {
    # about a minute, where nobody interrupts it
    "sqlite": (
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000000) select count(*) from n"
    ),
    "postgresql": "select pg_sleep(60)",
    "mariadb": "select sleep(60)",
}


@pytest.fixture(params=["sqlite"])
def ground(request, ground_of):
    """Only the kind of inbox that has coroutines; what waits in a database is said by the test."""
    return ground_of(request.param, "async")


async def hang(tx, seen):
    await asyncio.Event().wait()


async def in_the_database(tx, seen):
    await tx.execute(text(WAITS[tx.dialect.name]))


def test_a_coroutine_that_hangs_is_cancelled_undone_and_tried_again(houses):
    cancelled_undone_and_tried_again(houses, hang)


@pytest.mark.parametrize("ground", ["sqlite", *every(2, ["postgresql", "mariadb"])], indirect=True)
def test_one_that_hangs_in_the_database_loses_its_transaction_and_its_neighbours_get_another(houses):
    cancelled_undone_and_tried_again(houses, in_the_database)


def test_one_that_hangs_in_sqlites_own_driver_is_interrupted_there(houses):
    """It was waited for by whatever is said on that connection next."""
    ends = []

    async def by_the_driver(tx, seen):
        raw = await tx.get_raw_connection()
        ends.append(asyncio.ensure_future(raw.driver_connection.execute(WAITS["sqlite"])))
        await asyncio.shield(ends[-1])

    cancelled_undone_and_tried_again(houses, by_the_driver)
    assert [str(one.exception()) for one in ends] == ["interrupted"] * len(ends)


def test_one_that_hangs_as_it_writes_by_sqlites_own_driver_is_tried_again(houses):
    """SQLite undoes the transaction with such a statement: it was taken for a handler that had committed."""

    async def writes(tx, seen):
        raw = await tx.get_raw_connection()
        await raw.driver_connection.execute(f"insert into effects (event_id) {WAITS['sqlite']}")

    cancelled_undone_and_tried_again(houses, writes)


def test_one_that_reads_a_stream_leaves_sqlites_file_to_others(houses):
    """Rows that are still to be fetched kept an interrupt alive, which ended the rollback as well."""

    async def within_a_stream(tx, seen):
        async for _ in await tx.stream(text("select 1 union all select 2 union all select 3")):
            await in_the_database(tx, seen)

    cancelled_undone_and_tried_again(houses, within_a_stream)


def test_one_that_leaves_a_statement_at_sqlites_own_driver_keeps_nobody_waiting(houses):
    """Its savepoint was rolled back behind that statement, and its time was over by then for whoever looks after that."""

    async def leaves_it(tx, seen):
        raw = await tx.get_raw_connection()
        with suppress(TimeoutError):
            async with asyncio.timeout(HANGS_S / 2):
                await raw.driver_connection.execute(WAITS["sqlite"])

    assert within_ten_seconds(houses, leaves_it) == ["evt_0", "evt_1", "evt_2"]


def test_one_that_is_cancelled_twice_leaves_sqlites_file_to_others(houses):
    """The second one met the rollback, and the connection was closed without it."""

    async def twice(tx, seen):
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        for seconds in (HANGS_S / 2, HANGS_S / 2 + 0.001):
            loop.call_later(seconds, task.cancel)
        await in_the_database(tx, seen)

    assert within_ten_seconds(houses, twice) == ["evt_0", "evt_2"]


def test_a_statement_of_the_applications_ends_as_its_task_is_cancelled(houses):
    """On an engine that the inbox has too, no handler had the connection."""
    house = houses()
    engine = house.inbox.store.engine

    async def asks():
        async with engine.connect() as connection:
            await in_the_database(connection, None)

    async def story():
        asking = asyncio.ensure_future(asks())
        await asyncio.wait({asking}, timeout=HANGS_S)
        asking.cancel()
        async with asyncio.timeout(10):
            await asyncio.wait({asking})
        assert asking.cancelled()

    house.do(story())


def test_who_is_cancelled_as_a_statement_is_ended_is_cancelled_all_the_same():
    class Connection:
        async def interrupt(self) -> None: ...

    async def story():
        done = asyncio.Event()
        ending = asyncio.ensure_future(interrupting._all_told(Connection(), done.wait()))
        await asyncio.sleep(0)
        ending.cancel()
        await asyncio.wait({ending}, timeout=HANGS_S)
        assert not ending.done(), "what comes next would meet it"
        done.set()
        with pytest.raises(asyncio.CancelledError):
            await ending

    asyncio.run(story())


def within_ten_seconds(houses, wait):
    """The effects of three events, of which one is handled so."""
    house = houses(backoff=Backoff(attempts=1))
    is_last = asyncio.Event()

    async def last(event, tx):
        is_last.set()

    house.inbox.on("partner", "document.*")(slow(wait))
    house.inbox.on("partner", "last")(last)
    for n in range(3):
        house.receive(f"evt_{n}")
    house.receive("last", "last")

    async def story():
        house.inbox.start(1)
        async with asyncio.timeout(10):  # for SQLite's writer one waits as long
            await is_last.wait()
        await house.inbox.stop()

    house.do(story())
    return house.effects()


def slow(wait):
    async def handler(event, tx):
        await tx.execute(INSERT, {"id": event.id})
        if event.id == "evt_1":
            await wait(tx, event)

    return handler


def test_one_that_waits_for_the_writer_of_sqlite_is_cancelled_where_it_waits(houses):
    """Whoever looked at its connection for what had failed began to wait anew."""
    house = houses(backoff=Backoff(attempts=1))
    has_written, is_late = asyncio.Event(), asyncio.Event()

    async def writes(event, tx):
        await tx.execute(INSERT, {"id": event.id})
        has_written.set()
        await is_late.wait()

    async def waits(event, tx):
        await has_written.wait()
        try:
            await tx.execute(INSERT, {"id": event.id})
        finally:
            is_late.set()

    house.inbox.on("partner", "document.written")(writes)
    # Its time runs while the other writes: where that was up first, it never came to the writer, and the story waited for ever.
    house.inbox.on("partner", "document.late", timeout_s=1.0)(waits)
    for word in ("written", "late"):
        house.receive(word, f"document.{word}")

    async def story():
        house.inbox.start(2)
        async with asyncio.timeout(5):  # that one waits for the writer: 10 s
            await is_late.wait()
        await house.inbox.stop()

    house.do(story())
    assert house.effects() == ["written"]
    assert {one.id: one.code for one in house.events()} == {"written": None, "late": "handler_timeout"}


def cancelled_undone_and_tried_again(houses, wait):
    house = houses(backoff=Backoff(attempts=2, jitter=0))
    house.inbox.on("partner", "document.*", timeout_s=HANGS_S)(slow(wait))
    for n in range(3):
        house.receive(f"evt_{n}")
    house.work()
    assert house.effects() == ["evt_0", "evt_2"]
    assert (
        house.inbox.watch.retries[("partner", "handler_timeout", house.events(id="evt_1")[0].handler_version)]
        == 1
    )
    house.clock.passes(2)
    house.work()
    (event,) = house.events(id="evt_1")
    assert (event.state, event.code) == ("dead", "handler_timeout")
    assert event.error.endswith(f" was not done after 0.05{NEXT}")
    (handler,) = house.inbox.handlers._all
    assert event.error.startswith(handler.name)


def test_a_timeout_of_the_handlers_own_is_a_failure_like_any_other(houses):
    house = houses(backoff=Backoff(attempts=1))

    async def own(event, tx):
        async with asyncio.timeout(0):
            await asyncio.Event().wait()

    house.inbox.on("partner", "document.*", timeout_s=30)(own)
    house.receive("evt_1")
    house.work()
    assert house.events()[0].code == "handler_failed"


@pytest.mark.parametrize("seconds", [0, -1, 3_601])
def test_a_timeout_that_cannot_be_meant_is_refused(seconds, tmp_path):
    async def handler(event, tx): ...

    inbox = AsyncInbox(f"sqlite:///{tmp_path / 'inbox.db'}")
    with pytest.raises(SettingsError):
        inbox.on("*", timeout_s=seconds)(handler)
    asyncio.run(inbox.close())


def test_a_timeout_longer_than_half_a_lease_is_refused_with_the_lease_that_it_needs(tmp_path):
    """The work of a handler that is still at it would be given to another worker."""
    inbox = Inbox(f"sqlite:///{tmp_path / 'inbox.db'}", rules=Rules(lease_ms=30_000))
    inbox.on("*", timeout_s=15)(lambda event, tx: None)
    with pytest.raises(SettingsError, match="half a lease") as caught:
        inbox.on("*", timeout_s=16)(lambda event, tx: None)
    assert "lease_ms=32000" in (caught.value.hint or "")
    inbox.close()


@pytest.mark.parametrize(
    ("rules", "wanted", "got"),
    [
        (Rules(), None, 20.0),
        (Rules(), 29, 29),
        (Rules(timeout_s=5), None, 5),
        (Rules(lease_ms=4_000), None, 2.0),
        (Rules(lease_ms=7_200_000), 3_600, 3_600),
    ],
)
def test_what_a_handler_gets_that_wants_this(rules, wanted, got):
    assert rules.timeout(wanted) == got
