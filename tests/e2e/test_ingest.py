"""`surehook ingest` as a person runs it: a queue of RabbitMQ, a server on SQLite, and a kill in the middle."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aio_pika
import pytest

from lab.bench.server import KEY
from tests.e2e.calling import until
from tests.e2e.shop import Shop
from tests.ingest.test_frames import LATIN_1, UNREADABLE, Raw

QUEUE = "orders"
POISON = [b"not json", b'{"type":"a","data":1,"what":2}', b'{"tenant":"nobody","type":"a","data":1}']

TAKEN = [  # RabbitMQ takes them from a publisher, and other unreadable ones not
    UNREADABLE["an instant of the year 31,690,708"],
    UNREADABLE["a name in Latin-1"],
]


@contextmanager
def ingesting(shop: Shop, broker: str, place: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """The command; its words are in `said`."""
    command = [sys.executable, "-m", "surehook", "ingest", "--from", f"{broker}/{QUEUE}", *more]
    env = {**os.environ, "SUREHOOK_URL": f"http://127.0.0.1:{shop.server.port}", "SUREHOOK_API_KEY": KEY}
    with (place / "said").open("w") as said:
        process = subprocess.Popen(command, env=env, cwd=place, stderr=said, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def fill(broker: str, bodies: list[bytes]) -> None:
    connection = await aio_pika.connect(broker)
    async with connection:
        channel = await connection.channel()
        await channel.declare_queue(QUEUE, durable=True)
        for start in range(0, len(bodies), 500):
            sends = [
                channel.default_exchange.publish(
                    aio_pika.Message(body, message_id=f"m{start + place}"), QUEUE
                )
                for place, body in enumerate(bodies[start : start + 500])
            ]
            await asyncio.gather(*sends)


async def make(broker: str, queue: str) -> None:
    """A classic queue, as somebody may have made it beforehand."""
    connection = await aio_pika.connect(broker)
    async with connection:
        await (await connection.channel()).declare_queue(queue, durable=True)


async def fill_raw(broker: str, properties: list[bytes]) -> None:
    """Messages whose properties are these bytes."""
    connection = await aio_pika.connect(broker)
    async with connection:
        channel = await (await connection.channel()).get_underlay_channel()
        for raw in properties:
            await channel.basic_publish(events(1)[0], routing_key=QUEUE, properties=Raw(raw))


async def empty(broker: str, name: str) -> list[Any]:
    """Take all there is."""
    found = []
    connection = await aio_pika.connect(broker)
    async with connection:
        queue = await (await connection.channel()).declare_queue(name, passive=True)
        while (message := await queue.get(fail=False)) is not None:
            await message.ack()
            found.append(message)
    return found


def events(count: int) -> list[bytes]:
    return [json.dumps({"type": "order.paid", "data": {"n": number}}).encode() for number in range(count)]


def count_events(shop: Shop, tenant: str) -> int:
    return len(list(shop.api.pages("/v1/events", tenant=tenant)))


@pytest.mark.slow
def test_every_message_becomes_one_event_or_a_dead_letter_though_the_server_is_killed(
    alone: Shop, broker: str, tmp_path: Path
) -> None:
    tenant = alone.tenant()
    asyncio.run(fill(broker, [*events(3_000), *POISON]))
    with ingesting(alone, broker, tmp_path, "--tenant", tenant, "--prefetch", "700") as process:
        until(lambda: count_events(alone, tenant) >= 200, "some are there", 30)
        alone.server.kill()
        alone.start()
        until(lambda: count_events(alone, tenant) == 3_000, "all are there", 60)
        process.send_signal(signal.SIGINT)
        assert process.wait(15) == 0
    assert asyncio.run(empty(broker, QUEUE)) == []
    aside = asyncio.run(empty(broker, f"{QUEUE}.dead"))
    codes = sorted(message.headers["surehook-code"] for message in aside)
    assert codes == ["invalid_json", "unknown_field", "unknown_tenant"]
    assert sorted(message.body for message in aside) == sorted(POISON)
    assert "3,000 published, 3 put aside" in (tmp_path / "said").read_text()


@pytest.mark.slow
def test_messages_that_the_library_cannot_read_stop_nobody(alone: Shop, broker: str, tmp_path: Path) -> None:
    tenant = alone.tenant()
    asyncio.run(make(broker, f"{QUEUE}.dead"))
    asyncio.run(fill(broker, events(10)))
    asyncio.run(fill_raw(broker, [*TAKEN, LATIN_1]))
    asyncio.run(fill(broker, events(20)))  # the first ten again, under the same message ids
    with ingesting(alone, broker, tmp_path, "--tenant", tenant) as process:
        until(lambda: count_events(alone, tenant) == 21, "all are there", 30)
        process.send_signal(signal.SIGINT)
        assert process.wait(15) == 0
    assert asyncio.run(empty(broker, QUEUE)) == []
    aside = asyncio.run(empty(broker, f"{QUEUE}.dead"))
    assert {message.headers["surehook-code"] for message in aside} == {"unreadable"}
    assert [message.body for message in aside] == [events(1)[0]] * len(TAKEN)


@pytest.mark.slow
def test_ctrl_c_leaves_what_was_not_published_in_the_queue(alone: Shop, broker: str, tmp_path: Path) -> None:
    tenant = alone.tenant()
    alone.server.stop()
    asyncio.run(fill(broker, events(50)))
    with ingesting(alone, broker, tmp_path, "--tenant", tenant) as process:
        until(lambda: "waiting" in (tmp_path / "said").read_text(), "it waits", 15)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    assert len(asyncio.run(empty(broker, QUEUE))) == 50


@pytest.mark.slow
def test_a_queue_that_is_not_there_is_said(alone: Shop, broker: str, tmp_path: Path) -> None:
    with ingesting(alone, broker, tmp_path) as process:
        assert process.wait(20) == 4
    assert "there is no queue orders" in (tmp_path / "said").read_text()
