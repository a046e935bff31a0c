"""An inbox with a queue in front of it: answered by the queue, stored by a mover, and by the table when the queue cannot."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from surehook.core.errors import SettingsError
from surehook.inbox import Inbox, Queue
from surehook.inbox.queue import mover, packing
from surehook.inbox.queue.option import LEAST_BYTES
from surehook.inbox.queue.port import QueueAway
from surehook.ports.inbox import StoreError
from tests.inbox.house import NOW, House, call, message, partner
from tests.inbox.queue.memory import MemoryQueue

ROOT = "surehook.inbox"


@pytest.fixture
def queue() -> MemoryQueue:
    return MemoryQueue()


@pytest.fixture
def fronted(houses: Callable[..., House], queue: MemoryQueue) -> House:
    """A house with a queue, whose source does not refuse conflicts."""
    return houses(sources=[partner(on_conflict="accept")], queue=queue)


def moved(house: House) -> int:
    return house.do(house.inbox.move())


def said(caplog: pytest.LogCaptureFixture, word: str, level: int = logging.WARNING) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == ROOT and record.levelno == level and word in record.getMessage()
    ]


def test_the_queue_answers_and_a_mover_stores_with_the_time_of_arrival(fronted, queue):
    fronted.on()
    assert fronted.receive("evt_1").status == 200
    assert (fronted.events(), len(queue.waiting)) == ([], 1)
    fronted.clock.passes(60)
    assert moved(fronted) == 1
    assert (fronted.sql("select received_at from surehook_inbox_events"), len(queue.waiting)) == ([(NOW,)], 0)
    fronted.work()
    assert (fronted.effects(), fronted.states()) == (["evt_1"], {"evt_1": "finalized"})


def test_what_waits_at_the_same_moment_shares_messages_and_all_of_it_is_stored(fronted, queue):
    calls = [call(*message(f"evt_{n:03}"), at=NOW) for n in range(200)]
    assert {reply.status for reply in fronted.at_once(calls)} == {200}
    assert len(queue.waiting) < 200
    assert moved(fronted) == 200
    assert sorted(fronted.states()) == [f"evt_{n:03}" for n in range(200)]


def test_a_repeat_by_the_queue_takes_effect_once_and_is_counted_as_a_duplicate(fronted):
    fronted.on()
    for _ in range(3):
        assert fronted.receive("evt_1").status == 200
    assert moved(fronted) == 3
    fronted.work()
    assert fronted.effects() == ["evt_1"]
    assert fronted.inbox.watch.events == {("partner", "new"): 1, ("partner", "duplicate"): 2}
    assert fronted.inbox.watch.queued == {"partner": 3}


def test_a_message_that_comes_twice_is_stored_once(fronted, queue):
    fronted.on()
    fronted.receive("evt_1")
    queue.add(next(iter(queue.waiting.values())))
    moved(fronted)
    fronted.work()
    assert fronted.effects() == ["evt_1"]
    assert fronted.sql("select count(*) from surehook_inbox_requests") == [(1,)]


def test_another_body_under_a_known_id_becomes_a_conflict_that_the_sender_does_not_hear_of(fronted):
    assert fronted.receive("evt_1", word="a").status == 200
    assert fronted.receive("evt_1", word="b").status == 200
    moved(fronted)
    assert len(fronted.do(fronted.inbox.conflicts())) == 1


def test_a_source_that_refuses_conflicts_goes_to_the_table(houses, queue):
    house = houses(queue=queue)
    assert house.receive("evt_1", word="a").status == 200
    assert house.receive("evt_1", word="b").status == 409
    assert (len(house.events()), queue.asked) == (1, 0)


def test_a_large_body_goes_to_the_table(fronted, queue):
    assert fronted.receive("evt_1", word="x" * packing.LARGE_BYTES).status == 200
    assert (len(fronted.events()), len(queue.waiting)) == (1, 0)


def test_a_queue_that_is_away_at_the_start_is_told_once_and_the_table_takes_what_comes(
    fronted, queue, caplog
):
    queue.is_away = True
    for n in range(5):
        assert fronted.receive(f"evt_{n}").status == 200
    assert len(fronted.events()) == 5
    assert len(said(caplog, "so the table takes what comes: nothing is there")) == 1
    assert queue.asked == 1, "nobody waits for it while it is away"
    queue.is_away = False
    fronted.clock.passes(2)
    fronted.receive("evt_5")  # it is tried again beside this one
    fronted.receive("evt_6")
    fronted.receive("evt_7")
    assert 1 <= len(queue.waiting) <= 2
    assert len(said(caplog, "can be used again, after 2 s")) == 1
    moved(fronted)
    assert len(fronted.events()) == 8


def test_a_queue_that_is_lost_in_the_middle_loses_no_request(fronted, queue, caplog):
    assert fronted.receive("evt_1").status == 200
    queue.is_away = True
    for n in range(2, 20):
        assert fronted.receive(f"evt_{n}").status == 200
        fronted.clock.passes(1)
    assert len(fronted.events()) == 18
    assert len(said(caplog, "cannot be used")) == 1, "once a minute"
    queue.is_away = False
    moved(fronted)
    assert len(fronted.events()) == 19


def test_a_confirm_that_is_lost_puts_a_request_into_both_and_it_takes_effect_once(fronted, queue):
    fronted.on()
    queue.is_mute = True
    assert fronted.receive("evt_1").status == 200
    assert (len(fronted.events()), len(queue.waiting)) == (1, 1)
    fronted.work()
    moved(fronted)
    fronted.work()
    assert fronted.effects() == ["evt_1"]
    assert fronted.inbox.watch.events == {("partner", "new"): 1, ("partner", "duplicate"): 1}


def test_a_full_queue_leaves_the_rest_to_the_table(fronted, queue, caplog):
    queue.most_bytes = 1_500
    for n in range(6):
        assert fronted.receive(f"evt_{n}").status == 200
    assert 0 < len(queue.waiting) < 6
    assert len(fronted.events()) == 6 - len(queue.waiting)
    assert len(said(caplog, "is full, so the table takes what comes")) == 1
    moved(fronted)
    assert len(fronted.events()) == 6


def test_without_queue_and_table_a_sender_is_told_to_come_again(fronted, queue):
    queue.is_away = True
    fronted.sql("drop table surehook_inbox_requests")
    reply = fronted.receive("evt_1")
    assert (reply.status, b"storage_unavailable" in reply.body) == (503, True)
    assert "retry-after" in dict(reply.headers)


def test_with_the_table_away_the_queue_answers_and_keeps_it_until_the_table_is_back(fronted, queue):
    fronted.sql("alter table surehook_inbox_requests rename to gone")
    assert fronted.receive("evt_1").status == 200
    with pytest.raises(StoreError):
        moved(fronted)
    assert len(queue.waiting) == 1
    fronted.sql("alter table gone rename to surehook_inbox_requests")
    assert moved(fronted) == 1
    assert len(fronted.events()) == 1


def test_what_cannot_be_read_is_put_aside_and_told_once_and_keeps_nobody_back(fronted, queue, caplog):
    fronted.receive("evt_1")
    queue.add(b"\x00 no message of ours")
    fronted.receive("evt_2")
    assert moved(fronted) == 2
    assert [body for body, _ in queue.put_aside] == [b"\x00 no message of ours"]
    assert len(said(caplog, "cannot be read and is put aside", logging.ERROR)) == 1
    assert len(fronted.events()) == 2


def test_what_the_table_refuses_while_it_takes_others_is_put_aside(fronted, queue, caplog):
    fronted.receive("evt_1")
    (known,) = packing.unpack(next(iter(queue.waiting.values())))
    moved(fronted)
    other = structs.replace(known.events[0], id=b"o" * 16, event_id="evt_2")
    queue.add(
        packing.pack([structs.replace(known, events=(other,))])
    )  # the same request id, for another event
    store = fronted.inbox._group_commit.put_all

    def blocking(requests: Any) -> Any:
        try:
            return store(requests)
        finally:
            getattr(
                fronted.inbox, "let_go", lambda: None
            )()  # of the connection that Django keeps for each thread

    async def stored(requests: Any) -> Any:
        return await (asyncio.to_thread(blocking, requests) if fronted.kind == "sync" else store(requests))

    one = fronted.inbox.queue.mover(stored, fronted.inbox.stored)

    async def turns() -> None:
        consumer = await queue.consumer("a")
        assert await one._turn(consumer, 0.1) == 0
        for n in range(mover.REFUSED_MOST):
            assert not queue.put_aside, "it may be the table's fault"
            fresh = structs.replace(known.events[0], id=b"%d" % n + b"x" * 15, event_id=f"fresh_{n}")
            queue.add(packing.pack([structs.replace(known, id=fresh.id, events=(fresh,))]))
            assert await one._turn(consumer, 0.1) == 1
        await consumer.close()

    fronted._runner.run(turns())
    ((body, reason),) = queue.put_aside
    assert packing.unpack(body)[0].events == (other,)
    assert reason.startswith("refused: ")
    assert len(said(caplog, "it is put aside there", logging.ERROR)) == 1


def test_a_worker_moves_beside_processing(fronted):
    done = threading.Event()
    fronted.on(lambda event: done.set() if event.id == "evt_2" else None)
    fronted.receive("evt_1")

    async def story() -> None:
        async with fronted.inbox.running():
            reply: Any = fronted.inbox.receive(call(*message("evt_2"), at=NOW))
            assert (reply if fronted.kind == "sync" else await reply).status == 200
            assert await asyncio.to_thread(done.wait, 20)

    fronted._runner.run(story())
    assert fronted.effects() == ["evt_1", "evt_2"]
    assert fronted.inbox.watch.queue is not None


def test_depth_is_in_the_metrics_and_asked_for(fronted, queue):
    fronted.receive("evt_1")
    queue.put_aside.append((b"", ""))
    found = fronted.do(fronted.inbox.queued())
    assert (found.waiting, found.aside) == (1, 1)
    text = fronted.do(fronted.inbox.metrics()).decode()
    assert 'surehook_inbox_queue_messages{state="waiting"} 1.0' in text
    assert 'surehook_inbox_queue_messages{state="aside"} 1.0' in text
    assert 'surehook_inbox_queued_total{source="partner"} 1.0' in text
    queue.is_away = True
    assert "surehook_inbox_queue_messages{" not in fronted.do(fronted.inbox.metrics()).decode()
    with pytest.raises(QueueAway):
        fronted.do(fronted.inbox.queued())


def test_without_a_queue_there_is_none_to_ask(house):
    assert (house.do(house.inbox.queued()), moved(house)) == (None, 0)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("kafka://host", "no address of a broker"),
        ("redis//host", "no address of a broker"),
        ("redis://host:port/0", "this is no redis:// address"),
        ("amqp://", "this is no amqp:// address"),
        (5, "a int is no queue"),
    ],
)
def test_a_queue_that_cannot_be_one_is_refused_in_one_line(given, told):
    with pytest.raises(SettingsError) as refused:
        Inbox("sqlite://", queue=given)
    assert told in str(refused.value)


def test_a_missing_client_says_what_installs_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "surehook.inbox.queue.redis", None)
    monkeypatch.setitem(__import__("sys").modules, "redis.asyncio", None)
    with pytest.raises(SettingsError, match=r"pip install 'surehook\[inbox,redis\]'"):
        Inbox("sqlite://", queue="redis://host")


@pytest.mark.parametrize("choice", [{"name": "a b"}, {"name": ""}, {"most_bytes": LEAST_BYTES - 1}])
def test_a_queue_of_impossible_bounds_is_refused(choice):
    with pytest.raises(SettingsError):
        Queue("redis://host", **choice)


def test_a_queue_shows_no_password():
    assert "secret" not in repr(Queue("redis://:secret@host"))
