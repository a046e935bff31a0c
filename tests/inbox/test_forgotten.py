"""A handler that drops an `await` has not done its work: the attempt fails, names the coroutine, and nothing of it is kept."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading

import pytest
from sqlalchemy import text

from surehook.inbox import unawaited
from surehook.inbox.calls import HandlerCalls, this_task

# As a filter of the process has it: Python says nothing. The attempt fails all the same.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")


async def notify(event):
    """What should have been done beside."""


def forgetting(house, forget):
    """A handler that writes its row, and then forgets a coroutine in place of awaiting it."""

    def blocking(event, tx):
        house.write(tx, event.id)
        forget(event, tx)

    async def waiting(event, tx):
        await house.write(tx, event.id)
        forget(event, tx)

    return waiting if house.kind == "async" else blocking


def throws_away(event, tx):
    notify(event)


def keeps_until_it_returns(event, tx):
    kept = notify(event)
    assert kept is not None


@pytest.mark.parametrize("forget", [throws_away, keeps_until_it_returns])
def test_a_forgotten_coroutine_fails_the_attempt_and_nothing_of_it_stands(house, forget):
    house.inbox.on("partner", name="shop.done")(forgetting(house, forget))
    house.receive("evt_1")
    house.work()
    (one,) = house.events()
    assert (one.state, one.code) == ("accepted", "handler_failed")
    assert "shop.done has called notify" in one.error
    assert ("and not awaited it" if house.kind == "async" else "make the handler `async def`") in one.error
    assert house.effects() == []
    (tried,) = house.do(house.inbox.show(one.ref)).tries
    assert (tried.handler, tried.error) == ("shop.done", "NotAwaited")


def test_every_attempt_fails_not_only_the_first_that_python_would_warn_of(house):
    house.inbox.on("partner")(forgetting(house, throws_away))
    for n in range(3):
        house.receive(f"evt_{n}")
    house.work()
    house.clock.passes(60)
    house.work()
    assert {(one.state, one.attempts) for one in house.events()} == {("accepted", 2)}


def test_the_transaction_itself_is_what_is_forgotten_most(houses):
    house = houses()
    if house.kind != "async":
        pytest.skip("a blocking transaction gives no coroutines")

    @house.inbox.on("partner")
    async def done(event, tx):
        tx.execute(text("insert into effects (event_id) values ('x')"))

    house.receive("evt_1")
    house.work()
    (one,) = house.events()
    assert one.state == "accepted" and "AsyncConnection.execute" in one.error


def test_a_handler_that_awaits_is_well_beside_one_that_forgets(house):
    def forget_one(event, tx):
        if event.id == "evt_1":
            notify(event)

    house.inbox.on("partner")(forgetting(house, forget_one))
    for n in range(3):
        house.receive(f"evt_{n}")
    house.work()
    assert house.states() == {"evt_0": "finalized", "evt_1": "accepted", "evt_2": "finalized"}
    assert house.effects() == ["evt_0", "evt_2"]


def test_what_another_thread_or_task_forgets_is_nobodys_failure(house):
    def elsewhere(event, tx):
        other = threading.Thread(target=lambda: notify(event) and None)
        other.start()
        other.join()

    house.inbox.on("partner")(forgetting(house, elsewhere))
    house.receive("evt_1")
    house.work()
    assert house.states() == {"evt_1": "finalized"}


class Cycle:
    """Garbage that only the collector finds; it holds a coroutine nobody awaits."""

    def __init__(self) -> None:
        self.coroutine, self.itself = notify(None), self


class Destructor:
    """Garbage that only the collector finds; it makes a coroutine as it goes, as a library's connection does."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        notify(None)


@pytest.fixture
def collecting_by_hand():
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("garbage", [Cycle, Destructor])
def test_what_the_collector_finds_during_a_call_is_not_its_failure(house, garbage, collecting_by_hand):
    def collecting(event, tx):
        gc.collect()

    house.inbox.on("partner")(forgetting(house, collecting))
    house.receive("evt_1")
    garbage()
    house.work()
    assert house.states() == {"evt_1": "finalized"}


def test_what_a_handler_forgets_after_a_collection_is_its_failure(house, collecting_by_hand):
    def collecting(event, tx):
        Cycle()
        gc.collect()
        notify(event)

    house.inbox.on("partner")(forgetting(house, collecting))
    house.receive("evt_1")
    house.work()
    assert house.states() == {"evt_1": "accepted"}


@pytest.mark.filterwarnings("default:coroutine .* was never awaited:RuntimeWarning")
def test_python_warns_as_before_and_nobody_is_called_twice():
    calls = [HandlerCalls(lambda: 0.0, lambda handler, seconds: None, this_task) for _ in range(3)]
    for one in calls:
        unawaited.watch(one)
    with pytest.warns(RuntimeWarning, match="never awaited") as caught:
        asyncio.run(_forgets())
    (one,) = caught
    line = inspect.getsourcelines(_forgets)[1] + 1
    assert (one.filename, one.lineno) == (__file__, line), "the line that forgot it, and none of ours"


async def _forgets():
    notify(None)
