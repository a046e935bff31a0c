"""An inbox that receives and has no workers anywhere says so, once a minute, and one that is only behind does not."""

from __future__ import annotations

import asyncio

import pytest

from surehook.inbox import no_workers
from surehook.ports.inbox_reading import OldestDue
from tests.inbox.house import call, message


@pytest.fixture
def told(caplog):
    caplog.set_level("WARNING", "surehook.inbox")
    return lambda: [
        one.getMessage() for one in caplog.records if "no worker processes them" in one.getMessage()
    ]


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """A loop looks again as soon as it can; what has passed is said by the clock that is moved by hand."""
    monkeypatch.setattr(no_workers, "LOOK_S", 0.001)


def arrives(house, n):
    """An event comes, and it has been looked at: a loop does so later by itself, which is another test."""
    assert house.receive(f"evt_{n}").status == 200
    if house.kind == "async":
        house.do(house.inbox._look_for_workers())


def test_events_that_nobody_takes_are_told_once_a_minute(house, told):
    for n in range(8):
        arrives(house, n)
        house.clock.passes(20)
        assert len(told()) == (0, 0, 0, 1, 1, 1, 2, 2)[n]
    assert "of partner, has been due for 60 s" in told()[0] and "inbox.start()" in told()[0]


def test_workers_of_another_process_are_seen_by_what_they_take(house, told):
    house.inbox.no_workers._works = lambda: True  # so its looks are not of this test
    for n in range(4):
        house.receive(f"evt_{n}")
        house.clock.passes(25)
    house.inbox.no_workers._works = lambda: False
    for n in range(4, 12):  # behind: one event at a time, each due for more than a minute
        arrives(house, n)
        (oldest,) = house.sql("select min(due_at) from surehook_inbox_runs where due_at is not null")[0]
        assert house.clock.at - oldest >= 75_000
        house.sql("update surehook_inbox_runs set due_at = null where due_at = :due", due=oldest)
        house.clock.passes(25)
    assert told() == []


def test_a_process_with_workers_looks_at_nothing(house):
    assert house.inbox.no_workers.is_due()
    house.inbox.no_workers._works = lambda: True
    assert not house.inbox.no_workers.is_due()

    async def go():
        house.inbox.no_workers.arrived(None)

    house.do(go())
    assert house.inbox.no_workers._next is None


def test_what_is_put_off_or_was_never_there_is_not_told(house, told):
    house.on()
    arrives(house, 0)
    house.work()
    for n in range(1, 8):
        house.clock.passes(20)
        arrives(house, n)
        house.work()
    assert told() == []


def test_a_loop_looks_by_itself_until_nothing_waits(houses, told):
    house = houses()
    door = house.inbox.receive if house.kind == "async" else house.inbox.receive_async

    async def go():
        reply = await door(call(*message("evt_1"), at=house.clock.at))
        assert reply.status == 200
        await asyncio.sleep(0.1)
        assert told() == []
        house.clock.passes(61)
        for _ in range(2_000):
            if told():
                break
            await asyncio.sleep(0.01)
        assert len(told()) == 1
        assert house.inbox.no_workers._next is not None or not house.inbox.no_workers._looking.done()

    house.do(go())
    house.on()
    house.work()

    async def rests():
        await asyncio.sleep(0.1)
        assert house.inbox.no_workers._looking.done() and house.inbox.no_workers._next is None

    house.do(rests())


def test_a_database_that_is_away_is_told_as_trouble_and_looked_at_again(house, caplog):
    async def go():
        return await house.inbox._look_for_workers()

    house.sql("alter table surehook_inbox_events rename to elsewhere")
    assert (house.do(go()) if house.kind == "async" else house.inbox._look_for_workers()) is True
    assert "its tables are missing" in caplog.text


def test_one_look_is_under_way_at_a_time(houses):
    house = houses()
    if house.kind != "async":
        pytest.skip("a blocking inbox looks in threads, which its executor waits for")
    first, second, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def look():
        (second if first.is_set() else first).set()
        await may_end.wait()
        return False

    async def go():
        watch = house.inbox.no_workers
        async with asyncio.timeout(20):
            watch.arrived(look)
            await first.wait()
            watch._begin(look)  # as another event has arrived, and it is time to look for it
            await asyncio.sleep(0)
            assert not second.is_set()
            may_end.set()
            await second.wait()  # what has arrived meanwhile is looked at afterwards
            await watch.closed()

    house.do(go())


def test_closing_waits_for_a_look_under_way_and_begins_no_other(houses):
    house = houses()
    if house.kind != "async":
        pytest.skip("a blocking inbox looks in threads, which its executor waits for")
    inside, answers, looked = asyncio.Event(), asyncio.Event(), []

    async def look():
        inside.set()
        await answers.wait()
        looked.append(True)
        return True

    async def go():
        house.inbox.no_workers.arrived(look)
        await inside.wait()
        closing = asyncio.ensure_future(house.inbox.no_workers.closed())
        await asyncio.sleep(0)
        assert not closing.done()
        answers.set()
        await closing
        assert looked == [True] and house.inbox.no_workers._next is None

    house.do(go())


def test_a_run_is_the_oldest_from_when_it_was_seen_and_not_from_when_it_was_asked_for(caplog):
    class Slow:
        """A database whose answers take `seconds`."""

        def oldest_due(self, *, now):
            nonlocal at
            at += seconds
            return OldestDue(run=b"run", source="partner", due_at=now - 100_000)

    at, seconds = 0, 40
    watch = no_workers.NoWorkersWatch(lambda: at * 1000, lambda: at, lambda: False)
    watch.look(Slow())
    seconds = 5
    watch.look(Slow())
    assert caplog.messages == []
    seconds = 30
    watch.look(Slow())
    assert "has been due for 100 s" in caplog.text


def test_a_look_that_hangs_ends_and_another_one_begins(houses, monkeypatch):
    house = houses()
    if house.kind != "async":
        pytest.skip("a blocking inbox looks in threads, which its executor waits for")
    monkeypatch.setattr(no_workers, "HANGS_S", 0.01)
    begun = []
    again = asyncio.Event()

    async def look():
        begun.append(True)
        if len(begun) == 2:
            again.set()
        await asyncio.Event().wait()

    async def go():
        async with asyncio.timeout(20):
            house.inbox.no_workers.arrived(look)
            await again.wait()
        monkeypatch.setattr(no_workers, "ENDS_S", 0.01)
        await house.inbox.no_workers.closed()

    house.do(go())
