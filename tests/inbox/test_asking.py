"""SQLite's one writer, waited for: by a handler that asks the inbox from within its own transaction, and by others."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from surehook.inbox import Backoff
from surehook.inbox.django.store import DjangoWriterLock
from surehook.inbox.sql import engines
from surehook.inbox.sql.stores import WriterLock
from surehook.ports.inbox import StoreError, StoreUnavailable
from tests.inbox.house import known_as_quick

INSERT = text("insert into effects (event_id) values (:id)")


@pytest.fixture(params=["sync", "async"])
def kind(request):
    return request.param


@pytest.fixture
def ground(ground_of, kind):
    return ground_of("sqlite", kind)


@pytest.fixture
def house(houses, monkeypatch):
    monkeypatch.setattr(engines, "BUSY_MS", 20)
    return houses(backoff=Backoff(attempts=1))


def asking(house, *, writes_first):
    """A handler that asks the inbox what is dead, and writes its row before or after that."""
    inbox = house.inbox

    def ask_and_write(event, tx):
        if writes_first:
            tx.execute(INSERT, {"id": event.id})
        inbox.events(state="dead")
        if not writes_first:
            tx.execute(INSERT, {"id": event.id})

    async def ask_and_write_in_a_loop(event, tx):
        if writes_first:
            await tx.execute(INSERT, {"id": event.id})
        await inbox.events(state="dead")
        if not writes_first:
            await tx.execute(INSERT, {"id": event.id})

    inbox.on("partner")(ask_and_write if house.kind == "sync" else ask_and_write_in_a_loop)


@pytest.mark.parametrize("is_quick", [False, True])
def test_a_handler_may_ask_before_it_writes_and_one_of_a_batch_is_done_by_itself_for_that(house, is_quick):
    asking(house, writes_first=False)
    if is_quick:
        known_as_quick(house.inbox)
    for n in range(3):
        house.receive(f"evt_{n}")
    house.work()
    assert set(house.states().values()) == {"finalized"}
    assert sorted(house.effects()) == ["evt_0", "evt_1", "evt_2"]


def test_one_that_asks_after_it_wrote_is_told_what_to_do_and_nobody_waits(house):
    asking(house, writes_first=True)
    house.receive("evt_1")
    house.work()
    (event,) = house.events()
    assert event.state == "dead"
    assert "ask before the first use of tx" in event.error
    assert house.effects() == []
    assert house.receive("evt_2").status == 200


def test_who_waits_too_long_for_the_writer_of_its_process_is_told_to_come_again(house):
    if house.kind == "sync":
        house.inbox.store.turn.acquire()
        assert house.receive("evt_1").status == 503
        with pytest.raises(StoreUnavailable, match="one writer"):
            house.inbox.replay(reason="again", source="partner")
        house.inbox.store.turn.release()
    else:

        async def story():
            turn = house.inbox.store._turn
            await turn.acquire()
            with pytest.raises(StoreUnavailable, match="one writer"):
                await house.inbox.replay(reason="again", source="partner")
            turn.release()

        house.do(story())
    assert house.receive("evt_1").status == 200


@pytest.mark.parametrize("make", [lambda: WriterLock(threading.Lock()), DjangoWriterLock])
def test_a_thread_does_not_wait_for_ever_for_its_turn(make, monkeypatch):
    monkeypatch.setattr(engines, "BUSY_MS", 20)
    turn = make()
    turn.take()
    with ThreadPoolExecutor(1) as other:
        with pytest.raises(StoreUnavailable):
            other.submit(turn.take).result()
        turn.give()
        other.submit(turn.take).result()


def test_the_transaction_that_is_cut_is_the_one_around_what_a_handler_asks(houses, kind):
    house = houses()
    store = house.inbox.store
    caller = threading.get_ident()

    async def cut_in_a_loop(transaction):
        await store.run(lambda transaction: transaction.counts())
        assert store.cut(id(asyncio.current_task()))

    def cut(transaction):
        store.run(lambda inner: store.cut(caller))

    def outer(transaction):
        transaction.wait(cut_in_a_loop(transaction)) if kind == "async" else cut(transaction)

    async def story():
        await store.run(outer)

    with pytest.raises(StoreError, match="ended from outside"):
        house.do(story()) if kind == "async" else store.run(outer)
