"""A handler that holds up the event loop is told of, with what to do, and one that only takes long is not.

The clock is moved by hand: who moves it without letting the loop go on has held it for that long.
"""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text

from surehook.inbox import slow_loop

HOLDS_S = slow_loop.HELD_S + 0.05


@pytest.fixture(params=["sqlite"])
def ground(request, ground_of):
    """Only the kind of inbox that works in a loop."""
    return ground_of(request.param, "async")


@pytest.fixture
def told(caplog):
    caplog.set_level("WARNING", "surehook.inbox")
    return lambda: [one.getMessage() for one in caplog.records if "event loop" in one.getMessage()]


async def until(house, is_so):
    for _ in range(2_000):
        if is_so(await house.inbox.events()):
            return
        await asyncio.sleep(0.01)
    pytest.fail("it does not come to that")


def worked(house, events=3):
    """Workers in the loop process so many events."""

    async def go():
        async with house.inbox.running():
            await until(house, lambda found: [one.state for one in found] == ["finalized"] * events)

    for n in range(events):
        house.receive(f"evt_{n}")
    house.do(go())


def test_an_ordinary_function_that_blocks_is_told_once_with_what_to_do(house, told):
    house.inbox.on("partner", name="shop.done")(lambda event, tx: house.clock.passes(HOLDS_S))
    worked(house)
    assert told() == [
        "shop.done held the event loop for 0.15 s, in which nothing else went on: make it `async def` and await what it waits "
        "for, or define it on an Inbox, whose workers are threads"
    ]


@pytest.mark.parametrize("last", [True, False], ids=["before it returns", "before it waits"])
def test_a_coroutine_with_something_in_it_that_blocks_is_told(house, told, last):
    @house.inbox.on("partner", name="shop.done")
    async def done(event, tx):
        await asyncio.sleep(0)
        house.clock.passes(HOLDS_S)
        if not last:
            await asyncio.sleep(0)

    worked(house)
    assert len(told()) == 1
    assert "shop.done held the event loop for 0.15 s" in told()[0] and "asyncio.to_thread" in told()[0]


def test_one_that_waits_without_holding_the_loop_is_not_told(house, told):
    @house.inbox.on("partner", "document.signed")
    async def done(event, tx):
        elsewhere = asyncio.get_running_loop().create_task(passes())
        await elsewhere

    async def passes():
        house.clock.passes(10)

    worked(house)
    assert told() == []


def test_a_blocking_transaction_lets_the_loop_go_on(house, told):
    """Its statements are waited for, and what others do meanwhile is not the handler's."""

    @house.inbox.on("partner")
    def done(event, tx):
        loop.call_soon(house.clock.passes, 10)
        tx.execute(text("insert into effects (event_id) values ('x')"))

    async def this_loop():
        return asyncio.get_running_loop()

    loop = house.do(this_loop())
    worked(house)
    assert told() == []


def test_many_quick_handlers_in_one_step_are_nobodys_failure(house, told):
    house.inbox.on("partner")(lambda event, tx: house.clock.passes(0.03))
    worked(house, events=20)
    assert told() == []


def test_what_is_cancelled_where_it_waits_is_cancelled(houses):
    house = houses()

    @house.inbox.on("partner", timeout_s=0.05)
    async def done(event, tx):
        await asyncio.Event().wait()

    async def go():
        async with house.inbox.running():
            await until(house, lambda found: found[0].code == "handler_timeout")

    house.receive("evt_1")
    house.do(go())
