"""Handlers whose own task is cancelled, by themselves or by what they began: a failure like any other.

The worker's task is the one that they run in. It ended by that, the attempt was named nowhere, and its event waited for a lease.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import text

from surehook.inbox import Backoff, Rules
from tests.inbox.house import known_as_quick
from tests.inbox.loop_ends import cancel_others
from tests.inbox.test_documents import table

INSERT = text("insert into effects (event_id) values (:id)")
PATIENCE_S = 60


@pytest.fixture(
    params=["sqlite", *(pytest.param(one, marks=pytest.mark.slow) for one in ("postgresql", "mariadb"))]
)
def ground(request, ground_of):
    return ground_of(request.param, "async")


def this_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


async def waits(event, tx):
    this_task().cancel()
    await asyncio.sleep(0)


async def returns(event, tx):
    this_task().cancel()


def blocks(event, tx):
    this_task().cancel()


async def twice(event, tx):
    this_task().cancel()
    this_task().cancel()
    await tx.execute(INSERT, {"id": "after"})


async def by_a_child(event, tx):
    waiting = this_task()

    async def cancels():
        waiting.cancel()

    child = asyncio.create_task(cancels())
    await asyncio.Event().wait()
    await child


async def of_a_child(event, tx):
    child = asyncio.create_task(asyncio.sleep(PATIENCE_S))
    child.cancel()
    await child


async def raises(event, tx):
    raise asyncio.CancelledError


KINDS = pytest.mark.parametrize(
    "cancels", [waits, returns, blocks, twice, by_a_child, of_a_child, raises], ids=lambda one: one.__name__
)


def defined(house, cancels):
    """Handlers: of `evt_1`, one that has itself cancelled; of others, one that is well. And a signal that an event is dead."""

    @house.inbox.on("partner", "*")
    async def writes(event, tx):
        await tx.execute(INSERT, {"id": event.id})

    house.inbox.on("partner", "bad")(cancels)
    dead = asyncio.Event()
    house.inbox.on_dead(lambda failure: dead.set())
    return dead


@KINDS
def test_a_cancelled_handler_has_failed_and_its_worker_goes_on(houses, caplog, cancels):
    house = houses(backoff=Backoff(attempts=1))
    known_as_quick(house.inbox)
    dead = defined(house, cancels)
    for event_id, kind in (("evt_0", "good"), ("evt_1", "bad"), ("evt_2", "good")):
        house.receive(event_id, kind)

    async def story():
        house.inbox.start(1)
        (member,) = house.inbox.pool.members
        async with asyncio.timeout(PATIENCE_S):
            await dead.wait()
        assert not member.is_done and not member.task.cancelling()
        await house.inbox.stop()
        assert not member.task.cancelled()
        await house.inbox.work()

    house.do(story())
    assert house.states() == {"evt_0": "finalized", "evt_1": "dead", "evt_2": "finalized"}
    assert sorted(house.effects()) == ["evt_0", "evt_2"]
    (event,) = house.events(id="evt_1")
    (tried,) = house.do(house.inbox.show(event.ref)).tries
    assert (event.code, event.attempts, tried.error) == ("handler_failed", 1, "CancelledError")
    assert f"{event.ref} bad of partner: attempt 1 failed (handler_failed)" in caplog.text
    assert "a worker has ended" not in caplog.text


@KINDS
def test_a_cancelled_handler_of_a_move_has_failed_likewise(houses, caplog, cancels):
    house = houses(backoff=Backoff(attempts=1))
    house.inbox.follow(table(mode="strict"), "partner")
    dead = defined(house, cancels)
    house.inbox.on("partner", "document.sent")(cancels)
    house.receive("evt_1", "document.sent", document="doc_1", n=1)

    async def story():
        house.inbox.start(1)
        async with asyncio.timeout(PATIENCE_S):
            await dead.wait()
        await house.inbox.stop()

    house.do(story())
    assert house.events(id="evt_1")[0].code == "handler_failed"


def test_a_stop_is_no_failure_of_the_handler_that_it_cancels(houses, caplog):
    house = houses(rules=Rules(stop_s=0.05))
    began = asyncio.Event()

    @house.inbox.on("partner", "*")
    async def waits_long(event, tx):
        began.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await tx.execute(INSERT, {"id": event.id})
        raise asyncio.CancelledError

    house.receive("evt_1")

    async def story():
        house.inbox.start(1)
        async with asyncio.timeout(PATIENCE_S):
            await began.wait()
            await house.inbox.stop()

    house.do(story())
    assert "attempt 1 failed" not in caplog.text
    assert house.sql("select attempts, state from surehook_inbox_runs") == [(0, "accepted")]


def test_the_end_of_a_loop_is_none_either_and_waits_for_nobody(houses, caplog):
    house = houses()
    began = asyncio.Event()

    @house.inbox.on("partner", "*")
    async def waits_long(event, tx):
        began.set()
        await asyncio.Event().wait()

    house.receive("evt_1")

    async def story():
        house.inbox.start(2)
        await began.wait()
        assert not await cancel_others(PATIENCE_S), "its coroutine is over, and nobody has called stop"

    house.do(story())
    assert "attempt 1 failed" not in caplog.text
    assert house.sql("select attempts, state, error_code from surehook_inbox_runs") == [(1, "accepted", None)]


def test_a_worker_whose_handler_swallows_its_cancellation_ends_after_that_event(houses):
    house = houses()
    began = asyncio.Event()

    @house.inbox.on("partner", "*")
    async def must_not_fail(event, tx):
        began.set()
        with suppress(BaseException):
            await asyncio.Event().wait() if event.id == "evt_1" else None
        await tx.execute(INSERT, {"id": event.id})

    for number in (1, 2, 3):
        house.receive(f"evt_{number}")

    async def story():
        house.inbox.start(1)
        await began.wait()
        assert not await cancel_others(5)

    house.do(story())
    assert house.effects() == ["evt_1"], "it takes no more"


def test_the_loop_itself_begins_a_workers_task_and_keeps_the_factory_it_had(houses):
    """A loop may keep account of its tasks, and an application have a factory of its own."""
    house = houses()

    async def story():
        loop, begun = asyncio.get_running_loop(), []
        begin = loop.create_task
        loop.create_task = lambda work, **rest: begun.append(begin(work, **rest)) or begun[-1]
        before = loop.get_task_factory()
        house.inbox.start(1)
        (member,) = house.inbox.pool.members
        assert member.task in begun
        assert loop.get_task_factory() is before
        del loop.create_task
        await house.inbox.stop()

    house.do(story())
