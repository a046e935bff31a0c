"""Every broker keeps `inbox/queue/port.py`: the one in memory, Redis, RabbitMQ."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from surehook.inbox.queue import redis as redis_queue
from surehook.inbox.queue.brokers import broker
from surehook.inbox.queue.option import LEAST_BYTES, Queue
from surehook.inbox.queue.port import Broker, BrokerConsumer, Length, QueueMessage
from tests import servers
from tests.inbox.queue.memory import MemoryQueue

BODIES = [b"one", b"two", b"three"]
BROKERS = [
    "memory",
    "redis",
    pytest.param("rabbitmq", marks=pytest.mark.slow),
]  # a broker takes fifteen seconds to begin


@pytest.fixture(scope="module")
def durable_redis() -> Iterator[servers.Redis]:
    server = servers.Redis.new(keeping=True, always=True)
    yield server
    server.close()


@pytest.fixture(params=BROKERS)
def queue(request: pytest.FixtureRequest) -> Broker:
    """An empty queue that holds a megabyte."""
    if request.param == "memory":
        return MemoryQueue(LEAST_BYTES)
    if request.param == "redis":
        server = request.getfixturevalue("durable_redis")
        server.ask("FLUSHALL")
        return broker(Queue(server.url, most_bytes=LEAST_BYTES))
    return broker(Queue(request.getfixturevalue("broker"), most_bytes=LEAST_BYTES))


async def put(queue: Broker, *bodies: bytes) -> list[bool]:
    publisher = await queue.publisher()
    try:
        return await publisher.put(bodies)
    finally:
        await publisher.close()


async def taken(consumer: BrokerConsumer, count: int) -> list[QueueMessage]:
    """So many messages, in as many takes as it needs."""
    found: list[QueueMessage] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            found += await consumer.take(count - len(found), wait_s=0.2)
    return found


def bodies(messages: list[QueueMessage]) -> list[bytes]:
    return [one.body for one in messages]


async def test_what_was_confirmed_is_taken_once_in_order_and_forgotten_when_done(queue: Broker) -> None:
    assert await put(queue, *BODIES) == [True] * 3
    consumer = await queue.consumer("a")
    found = await taken(consumer, 3)
    assert bodies(found) == BODIES
    assert await consumer.take(10, wait_s=0.1) == []
    await consumer.done(found)
    await consumer.close()
    again = await queue.consumer("b")
    assert await again.take(10, wait_s=0.3) == []
    assert await again.length() == Length(0, 0)
    await again.close()


async def test_who_waits_gets_what_comes_meanwhile(queue: Broker) -> None:
    consumer = await queue.consumer("a")
    assert await consumer.take(10, wait_s=0.05) == []
    waiting = asyncio.create_task(consumer.take(10, wait_s=10))
    await asyncio.sleep(0)
    await put(queue, b"late")
    assert bodies(await waiting) == [b"late"]
    await consumer.close()


async def test_what_a_taker_did_not_finish_comes_again_to_it(queue: Broker) -> None:
    await put(queue, *BODIES)
    consumer = await queue.consumer("a")
    found = await taken(consumer, 3)
    await consumer.done(found[1:2])
    await consumer.close()
    again = await queue.consumer("a")
    assert sorted(bodies(await taken(again, 2))) == [b"one", b"three"]
    await again.close()


async def test_what_a_taker_left_comes_to_another(queue: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_queue, "ABANDONED_MS", 0)
    await put(queue, *BODIES)
    first = await queue.consumer("a")
    found = await taken(first, 3)
    await first.done(found[:1])
    await first.close()
    other = await queue.consumer("b")
    rest = await taken(other, 2)
    assert sorted(bodies(rest)) == [b"three", b"two"]
    await other.done(rest)
    assert await other.length() == Length(0, 0)
    await other.close()


async def test_two_takers_at_once_have_different_messages(queue: Broker) -> None:
    await put(queue, *(b"%d" % number for number in range(20)))
    one, other = await queue.consumer("a"), await queue.consumer("b")
    first = await taken(one, 5)
    await one.done(first)
    rest: list[bytes] = []
    async with asyncio.timeout(20):
        while len(rest) < 15:
            for consumer in (one, other):
                some = await consumer.take(5, wait_s=0.1)
                rest += bodies(some)
                await consumer.done(some)
    assert sorted(bodies(first) + rest, key=int) == [b"%d" % number for number in range(20)]
    await one.close()
    await other.close()


async def test_messages_may_be_finished_out_of_order(queue: Broker) -> None:
    await put(queue, *BODIES)
    consumer = await queue.consumer("a")
    found = await taken(consumer, 3)
    await consumer.done([found[2]])
    await consumer.done([found[1], found[0]])
    await consumer.close()
    again = await queue.consumer("b")
    assert await again.length() == Length(0, 0)
    await again.close()


async def test_what_is_put_aside_is_counted_there_and_comes_no_more(queue: Broker) -> None:
    await put(queue, *BODIES)
    consumer = await queue.consumer("a")
    found = await taken(consumer, 3)
    await consumer.aside(found[1], "it cannot be read")
    await consumer.done([found[0], found[2]])
    assert await consumer.length() == Length(0, 1)
    await consumer.close()


async def test_a_full_queue_takes_what_fits_and_says_no_to_the_rest(queue: Broker) -> None:
    large = b"x" * (300 * 1024)
    answers = []
    for _ in range(6):  # RabbitMQ counts a moment later than it confirms
        answers += await put(queue, large)
    assert answers[0] is True
    assert answers[-1] is False
    consumer = await queue.consumer("a")
    (first, *_) = await taken(consumer, answers.count(True))
    await consumer.done([first])
    for _ in range(20):
        if await put(queue, large) == [True]:
            break
        await asyncio.sleep(0.1)
    else:
        raise AssertionError("it stays full")
    await consumer.close()


async def test_a_body_of_any_bytes_comes_back_as_it_was(queue: Broker) -> None:
    body = bytes(range(256)) * 40
    await put(queue, body)
    consumer = await queue.consumer("a")
    assert bodies(await taken(consumer, 1)) == [body]
    await consumer.close()
