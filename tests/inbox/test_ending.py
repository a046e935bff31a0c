"""What would end a worker, or be taken for the store's fault, and comes from a handler: it is that handler's failure."""

from __future__ import annotations

import asyncio
import threading

import pytest

from surehook.inbox import Backoff, Ignore, Later, Refuse, Rules
from surehook.inbox import pool as pool_module
from surehook.ports.inbox import Contended, StoreError, StoreUnavailable
from tests.inbox.house import call, known_as_quick, message
from tests.inbox.test_documents import followed
from tests.inbox.test_hanging import until


async def until_it_is(condition):
    """Wait for what other tasks do; a test fails that waits too long."""
    for _ in range(6_000):
        if condition():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it never came")


class Panic(BaseException):
    """As a library in Rust raises."""


def raises(error):
    def effect(event):
        if event.id.startswith("bad"):
            raise error

    return effect


@pytest.mark.parametrize(
    "error",
    [
        SystemExit("bye"),
        asyncio.CancelledError(),
        Panic("at the disco"),
        StoreUnavailable("another inbox is away"),
        Contended("in another inbox"),
        StoreError("of another inbox"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_a_handler_raises_is_its_failure_whatever_it_is(houses, error):
    """The others of its transaction are done, it is tried its attempts, and the history says what it raised."""
    house = houses(backoff=Backoff(attempts=2, first_s=1, factor=1))
    house.on(raises(error))
    for event_id in ("evt_1", "bad", "evt_2"):
        house.receive(event_id)
    house.work()
    house.clock.passes(10)
    house.work()
    assert house.states() == {"evt_1": "finalized", "bad": "dead", "evt_2": "finalized"}
    assert house.effects() == ["evt_1", "evt_2"]
    (event,) = house.events(id="bad")
    assert (event.code, event.attempts) == ("handler_failed", 2)
    assert f"{type(error).__name__}" in event.error
    assert "Raised" not in event.error
    tries = house.do(house.inbox.show(event.ref)).tries
    assert [(one.attempt, one.error) for one in tries] == [
        (1, type(error).__name__),
        (2, type(error).__name__),
    ]


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (Ignore, "the class Ignore: write `return Ignore(…)`, or raise it"),
        (Later, "the class Later: write `return Later(…)`, or raise it"),
        (Refuse, "the class Refuse: write `return Refuse(…)`, or raise it"),
        (KeyError, "the class KeyError: raise it, or return Later(…), Ignore(…) or Refuse(…)"),
        (OSError("no"), "an error, OSError: raise it, or return Later(…), Ignore(…) or Refuse(…)"),
        (SystemExit(1), "an error, SystemExit: raise it, or return Later(…), Ignore(…) or Refuse(…)"),
    ],
    ids=str,
)
def test_an_error_that_is_returned_fails_the_attempt_and_says_what_to_write(houses, returned, words):
    house = houses(backoff=Backoff(attempts=1))
    house.on(lambda event: returned if event.id == "bad" else None, name="shop.done")
    for event_id in ("evt_1", "bad"):
        house.receive(event_id)
    house.work()
    assert house.states() == {"evt_1": "finalized", "bad": "dead"}
    assert house.effects() == ["evt_1"]
    (event,) = house.events(id="bad")
    (tried,) = house.do(house.inbox.show(event.ref)).tries
    assert (event.code, tried.error) == ("handler_failed", "ErrorReturned")
    assert tried.message == f"shop.done has returned {words}"


def test_a_class_that_is_raised_is_the_answer(house):
    def ignores(event):
        raise Ignore

    house.on(ignores)
    house.receive("evt_1")
    house.work()
    assert house.states() == {"evt_1": "ignored"}


class TestThreads:
    @pytest.fixture(params=["sqlite"])
    def ground(self, request, ground_of):
        return ground_of(request.param, "sync")

    def test_ctrl_c_in_the_main_thread_ends_the_work(self, house):
        house.on(raises(KeyboardInterrupt()))
        house.receive("bad")
        with pytest.raises(KeyboardInterrupt):
            house.work()
        (event,) = house.events()
        assert (event.state, event.code) == ("accepted", None)

    def test_an_error_of_its_own_transaction_is_not_the_handlers(self, houses):
        """On SQLite it begins within the handler, and finds the document moved by another one: nothing is counted."""
        house = followed(houses)
        moves = ["update surehook_inbox_documents set updated_at = updated_at + 1"]

        def meets(event, tx):
            if moves:
                house.sql(moves.pop())
            house.write(tx, event.id)

        house.inbox.on("partner", "document.viewed")(meets)
        house.receive("evt_1", "document.sent", document="doc_1", n=1)
        house.work()
        house.receive("evt_2", "document.viewed", document="doc_1", n=2)
        house.work()
        (event,) = house.events(id="evt_2")
        assert (event.state, event.attempts, event.code) == ("finalized", 1, None)
        assert house.effects() == ["evt_2"]
        assert house.inbox.show(event.ref).tries == []

    def test_a_commit_of_the_handler_is_told_as_such(self, houses):
        house = houses(backoff=Backoff(attempts=1))
        house.inbox.on("partner")(lambda event, tx: tx.commit())
        house.receive("evt_1")
        house.work()
        (event,) = house.events()
        assert event.code == "commit_failed"

    def test_a_worker_that_ends_by_an_error_is_told_and_replaced_and_not_without_end(
        self, house, monkeypatch, caplog
    ):
        """A defect of ours, and no handler's."""
        monkeypatch.setattr(pool_module, "LOOK_S", 0.01)
        began = []

        def ends(transition):
            began.append(threading.current_thread().name)
            raise SystemExit

        house.on()
        known_as_quick(house.inbox)
        monkeypatch.setattr(house.inbox.transitions, "report", ends)
        house.receive("evt_1")
        house.inbox.start(1)
        until(lambda: "a worker has ended, and another one begins" in caplog.text)
        assert "SystemExit" in caplog.text
        (record,) = [one for one in caplog.records if "another one begins" in one.getMessage()]
        assert record.levelname == "ERROR"
        house.receive("evt_2")
        until(lambda: len(began) == 2 and house.inbox.pool.members[0].is_done)
        house.receive("evt_3")
        looks = []
        monkeypatch.setattr(house.inbox.pool.calls, "boot", lambda: looks.append(1) or house.clock.boot())
        until(lambda: len(looks) > 5)
        assert len(began) == 2, "not before some seconds are over"
        house.clock.passes(6)
        until(lambda: len(began) == 3)
        house.inbox.stop()
        assert house.effects() == ["evt_1", "evt_2", "evt_3"]


class TestTasks:
    @pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
    def ground(self, request, ground_of):
        return ground_of(request.param, "async")

    def test_something_that_a_coroutine_waits_for_is_cancelled(self, houses):
        house = houses(backoff=Backoff(attempts=1), rules=Rules(stop_s=1))
        ended = []
        house.inbox.observe(ended.append)

        async def relays(event, tx):
            if event.id == "bad":
                asked = asyncio.create_task(asyncio.Event().wait())
                asyncio.get_running_loop().call_soon(asked.cancel)
                await asked

        house.inbox.on("partner")(relays)
        for event_id in ("bad", "evt_1"):
            house.receive(event_id)

        async def story():
            house.inbox.start(1)
            await until_it_is(lambda: len(ended) == 2)
            (hand,) = house.inbox.pool.members
            assert not hand.is_done
            await house.inbox.stop()

        house.do(story())
        assert house.states() == {"bad": "dead", "evt_1": "finalized"}

    def test_a_task_that_is_cancelled_from_outside_ends_and_is_replaced(self, house, monkeypatch, caplog):
        monkeypatch.setattr(pool_module, "LOOK_S", 0.01)
        began = asyncio.Event()

        async def waits(event, tx):
            began.set()
            if event.id == "bad":
                await asyncio.Event().wait()

        house.inbox.on("partner")(waits)
        house.receive("bad")

        async def story():
            house.inbox.start(1)
            await began.wait()
            (hand,) = house.inbox.pool.members
            hand.task.cancel()
            await until_it_is(lambda: hand not in house.inbox.pool.members)
            assert hand.task.cancelled()
            began.clear()
            await house.inbox.receive(call(*message("evt_1"), at=house.clock.at))
            await began.wait()
            await house.inbox.stop()

        house.do(story())
        assert "a worker has ended, and another one begins" in caplog.text
        assert house.states()["evt_1"] == "finalized"


@pytest.mark.parametrize("asked", ["finalize", "reject"])
def test_a_handler_that_ends_its_own_event_by_a_call_is_told_what_to_write(houses, asked):
    """The call would wait for the transaction that the handler is in, until its time is over."""
    house = houses(backoff=Backoff(attempts=1))
    asks = {"finalize": house.inbox.finalize, "reject": lambda ref: house.inbox.reject(ref, "bad")}[asked]

    async def waits(event, tx):
        await asks(event.ref)

    def blocks(event, tx):
        asks(event.ref)

    house.inbox.on("partner")(waits if house.kind == "async" else blocks)
    house.receive("evt_1")
    house.work()
    (event,) = house.events()
    assert (event.state, event.code) == ("dead", "handler_failed")
    assert f"SettingsError: ref: {event.ref} is the event of the handler that asks" in event.error
    assert "return, or raise Refuse(code)" in event.error
