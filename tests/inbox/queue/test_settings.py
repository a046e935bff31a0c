"""Redis is accepted into only where it cannot lose what it confirmed, and RabbitMQ only into a queue of our making."""

from __future__ import annotations

import asyncio
import gc
import logging
import warnings
from collections.abc import Callable, Iterator

import aio_pika
import pytest

from surehook.host.clock import SystemClock
from surehook.inbox.queue.brokers import broker
from surehook.inbox.queue.option import LEAST_BYTES, Queue
from surehook.inbox.queue.port import CONFIRM_S, QueueAway, QueueUnfit
from tests import servers
from tests.inbox.house import House, partner

WRONG = {
    "memory": ("appendonly", "no", "yes", "set `appendonly yes`"),
    "evicting": ("maxmemory-policy", "allkeys-lru", "noeviction", "set `maxmemory-policy noeviction`"),
}
WRONG_BEFORE_72 = {
    "everysec": ("appendfsync", "everysec", "always", "set `appendfsync always`"),
    "rewriting": ("no-appendfsync-on-rewrite", "yes", "no", "`no-appendfsync-on-rewrite no`"),
}


@pytest.fixture(scope="module")
def redis() -> Iterator[servers.Redis]:
    server = servers.Redis.new(keeping=True, always=True)
    yield server
    server.close()


def says_when(server: servers.Redis) -> bool:
    """Whether it has WAITAOF."""
    return bool(server.ask("COMMAND", "INFO", "WAITAOF")[0])  # type: ignore[index]


@pytest.mark.parametrize("name", [*WRONG, *WRONG_BEFORE_72])
async def test_a_redis_that_could_lose_what_it_confirmed_is_refused_and_told_what_to_set(redis, name):
    setting, wrong, right, told = (WRONG | WRONG_BEFORE_72)[name]
    redis.ask("CONFIG", "SET", setting, wrong)
    try:
        if name in WRONG_BEFORE_72 and says_when(redis):
            publisher = await broker(Queue(redis.url)).publisher()
            assert await publisher.put([b"on the disk when WAITAOF says so"]) == [True]
            await publisher.close()
            return
        with pytest.raises(QueueUnfit) as refused:
            await broker(Queue(redis.url)).publisher()
        assert told in str(refused.value)
        assert "\n" not in str(refused.value)
    finally:
        redis.ask("CONFIG", "SET", setting, right)


async def test_a_redis_without_memory_left_is_full(redis):
    queue = broker(Queue(redis.url, name="oom"))
    publisher = await queue.publisher()
    redis.ask("CONFIG", "SET", "maxmemory", "1")
    try:
        assert await publisher.put([b"x", b"y"]) == [False, False]
    finally:
        redis.ask("CONFIG", "SET", "maxmemory", "0")
    assert await publisher.put([b"x"]) == [True]
    await publisher.close()


def test_the_inbox_stores_in_its_table_and_says_so_in_one_line(
    houses: Callable[..., House], redis: servers.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    house = houses(sources=[partner(on_conflict="accept")], queue=redis.url)
    redis.ask("CONFIG", "SET", "appendonly", "no")
    try:
        for n in range(3):
            assert house.receive(f"evt_{n}").status == 200
    finally:
        redis.ask("CONFIG", "SET", "appendonly", "yes")
    assert len(house.events()) == 3
    (line,) = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
    assert line == (
        "the queue in front of the inbox cannot be used, so the table takes what comes: "
        "Redis has its streams in memory alone: set `appendonly yes`"
    )


def test_a_redis_that_freezes_is_waited_for_two_seconds_and_the_table_takes_it(
    houses: Callable[..., House], redis: servers.Redis
) -> None:
    house = houses(sources=[partner(on_conflict="accept")], queue=Queue(redis.url, name="frozen"))
    assert house.receive("evt_1").status == 200
    redis.freeze()
    try:
        began = SystemClock().boot()
        assert house.receive("evt_2").status == 200
        assert CONFIRM_S <= SystemClock().boot() - began < 2 * CONFIRM_S
        assert house.receive("evt_3").status == 200
        assert SystemClock().boot() - began < 2 * CONFIRM_S, "nobody waits for it again"
    finally:
        redis.thaw()
    assert sorted(house.states()) == ["evt_2", "evt_3"]
    house.do(house.inbox.move())
    assert sorted(house.states()) == ["evt_1", "evt_2", "evt_3"]


async def test_a_redis_that_does_not_come_to_write_confirms_nothing(redis: servers.Redis) -> None:
    if not says_when(redis):
        pytest.skip("needs Redis 7.2, which has WAITAOF")
    publisher = await broker(Queue(redis.url)).publisher()
    redis.ask("CONFIG", "SET", "appendfsync", "no")
    try:
        with pytest.raises(QueueAway, match=r"did not have it on its disk|does not answer"):
            await publisher.put([b"in memory"])
    finally:
        redis.ask("CONFIG", "SET", "appendfsync", "always")
        await publisher.close()


async def test_the_password_of_a_broker_is_in_no_error(redis):
    with pytest.raises(QueueAway) as refused:
        await broker(Queue(f"redis://user:hidden@127.0.0.1:{redis.port}/0")).publisher()
    assert "hidden" not in str(refused.value)
    with pytest.raises(QueueAway) as refused:
        await broker(Queue("amqp://user:hidden@127.0.0.1:1/")).publisher()
    assert "hidden" not in str(refused.value)


async def test_a_broker_that_is_away_leaves_no_coroutine_for_another_thread_to_find() -> None:
    gc.disable()
    try:
        with pytest.raises(QueueAway):
            await broker(Queue("amqp://guest:guest@127.0.0.1:1/")).publisher()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            await asyncio.to_thread(gc.collect)
    finally:
        gc.enable()
    assert [str(one.message) for one in caught if "never awaited" in str(one.message)] == []


@pytest.mark.slow  # a broker takes fifteen seconds to begin
async def test_a_virtual_host_that_is_not_there_is_named(broker: str) -> None:
    from surehook.inbox.queue import brokers

    with pytest.raises(QueueAway, match="the virtual host 'nowhere' is refused: is it there"):
        await brokers.broker(Queue(f"{broker.rpartition('/')[0]}/nowhere")).publisher()


@pytest.mark.slow
async def test_a_queue_that_is_set_otherwise_is_taken_from_and_not_given_to(broker: str) -> None:
    from surehook.inbox.queue import brokers

    connection = await aio_pika.connect(broker)
    channel = await connection.channel()
    await channel.declare_queue("surehook.inbox", durable=True)
    await channel.default_exchange.publish(aio_pika.Message(b"from before"), "surehook.inbox")
    await connection.close()
    queue = brokers.broker(Queue(broker, most_bytes=LEAST_BYTES))
    with pytest.raises(QueueUnfit, match="give this one another name"):
        await queue.publisher()
    consumer = await queue.consumer("a")
    (message,) = await consumer.take(1, wait_s=10)
    assert message.body == b"from before"
    await consumer.done([message])
    await consumer.close()


@pytest.mark.slow
async def test_a_queue_that_was_deleted_takes_nothing_and_is_made_anew(broker: str) -> None:
    from surehook.inbox.queue import brokers

    queue = brokers.broker(Queue(broker))
    publisher, consumer = await queue.publisher(), await queue.consumer("a")
    assert await consumer.take(1, wait_s=0.1) == []
    connection = await aio_pika.connect(broker)
    await (await connection.channel()).queue_delete("surehook.inbox")
    await connection.close()
    with pytest.raises(QueueAway, match="no such queue any more"):
        await publisher.put([b"lost?"])
    with pytest.raises(QueueAway, match="ended the consumer"):
        await consumer.take(1, wait_s=10)
    await publisher.close()
    await consumer.close()
    again = await queue.publisher()
    assert await again.put([b"not lost"]) == [True]
    await again.close()


@pytest.mark.slow
def test_one_move_takes_all_that_waits_also_what_the_broker_has_handed_over(
    houses: Callable[..., House], broker: str
) -> None:
    house = houses(sources=[partner(on_conflict="accept")], queue=Queue(broker))
    for n in range(100):
        assert house.receive(f"evt_{n}").status == 200
    assert house.do(house.inbox.queued()).waiting == 100
    assert house.do(house.inbox.move()) == 100
    assert len(house.states()) == 100
