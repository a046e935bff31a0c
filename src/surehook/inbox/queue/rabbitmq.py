"""The queue as a quorum queue of RabbitMQ: persistent messages, publisher confirms, acknowledgements (aio-pika).

Nothing is rejected or requeued. The delivery limit is out of reach: from version 4 RabbitMQ has one of twenty unless told
another, and throws away what comes back more often, as after twenty lost connections.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import takewhile
from typing import Any, TypeVar

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage
from aio_pika.exceptions import (
    CONNECTION_EXCEPTIONS,
    ChannelPreconditionFailed,
    DeliveryError,
    InvalidFrameError,
    PublishError,
)
from yarl import URL

from surehook.core.errors import said
from surehook.inbox.queue.port import CONFIRM_S, CONNECT_S, Length, QueueAway, QueueMessage, QueueUnfit

# A commit may keep the mover's loop for seconds; a broker that is gone is noticed by the next request.
HEARTBEAT_S = 30
DELIVERY_LIMIT = 1_000_000_000
PREFETCH = 64  # messages in a mover's hands
ANSWER_S = 10.0  # for a taker, which nobody waits for
T = TypeVar("T")

_AWAY = (*CONNECTION_EXCEPTIONS, asyncio.TimeoutError, ssl.SSLError)
# What they would log, with its traceback, while a broker is away, our caller tells once.
for library in ("aiormq", "aio_pika"):
    logging.getLogger(library).setLevel(logging.CRITICAL)


class RabbitQueue:
    """`port.Broker` on one URL (the path is the virtual host), or on several, separated by commas, of which each connection takes
    the next: the nodes of one cluster. Raises ValueError for one that cannot be read."""

    def __init__(self, url: str, name: str, most_bytes: int) -> None:
        given = [URL(each.strip()) for each in url.split(",")]
        if not all(each.host and each.scheme in ("amqp", "amqps") for each in given):
            raise ValueError("no address")
        self._urls = [
            each if "heartbeat" in each.query else each.update_query(heartbeat=HEARTBEAT_S) for each in given
        ]
        self._tries = 0
        self.name, self.aside = name, f"{name}.aside"
        self._arguments: Mapping[str, str | int] = {
            "x-queue-type": "quorum",
            "x-delivery-limit": DELIVERY_LIMIT,
            "x-max-length-bytes": most_bytes,
            "x-overflow": "reject-publish",
        }

    async def publisher(self) -> RabbitPublisher:
        async with self._connected() as connection:
            await self._declare(connection, strict=True)
            channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
            return RabbitPublisher(connection, channel, self.name)

    async def consumer(self, taker: str) -> RabbitConsumer:
        async with self._connected() as connection:
            await self._declare(connection, strict=False)
            channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
            await channel.set_qos(prefetch_count=PREFETCH)
            return RabbitConsumer(connection, channel, self, taker)

    async def _declare(self, connection: AbstractConnection, *, strict: bool) -> None:
        """Declare the queues. We publish only to one that has our arguments, and consume from whatever is there."""
        try:
            channel = await connection.channel()
            await channel.declare_queue(self.aside, durable=True, arguments={"x-queue-type": "quorum"})
            await channel.declare_queue(self.name, durable=True, arguments={**self._arguments})
            await channel.close()
        except ChannelPreconditionFailed as error:
            if strict:
                raise QueueUnfit(
                    f"the queue {self.name} is there and is set otherwise ({said(error)}): delete it when it is empty, or give "
                    "this one another name"
                ) from None

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[AbstractConnection]:
        """Open a connection, and close it if what is done first with it fails."""
        url = self._urls[self._tries % len(self._urls)]
        self._tries += 1
        connection: AbstractConnection | None = None
        try:
            async with asyncio.timeout(CONNECT_S):
                properties: Any = {"connection_name": "surehook inbox"}
                connection = await aio_pika.connect(
                    url, client_properties=properties, connection_class=ClosedByUs
                )
                yield connection
        except BaseException as error:
            if connection is not None:
                await _closed(connection)
            if isinstance(error, _AWAY):
                told = f"RabbitMQ: {_refusal(url, error)}"
                raise QueueAway(told.replace(url.password, "***") if url.password else told) from None
            raise


class ClosedByUs(aio_pika.Connection):
    """A connection that its owner closes. The client's own has its destructor make the coroutine that closes it: collected by a
    thread without a loop, as after each attempt to reach a broker that is away, that is never awaited."""

    def __del__(self) -> None:
        """Nothing."""


def _refusal(url: URL, error: BaseException) -> str:
    """Say why a broker was not reached. What it answers about a virtual host, its client keeps to itself."""
    if isinstance(error, InvalidFrameError) and "OpenOk" in str(error):
        host = url.path[1:] or "/"
        return (
            f"the virtual host {host!r} is refused: is it there (`rabbitmqctl list_vhosts`), and may this user use it "
            f"(`rabbitmqctl list_permissions -p {host}`)?"
        )
    return said(error)


class RabbitPublisher:
    """`port.BrokerPublisher`."""

    def __init__(self, connection: AbstractConnection, channel: AbstractChannel, queue: str) -> None:
        self._connection, self._channel, self._queue = connection, channel, queue

    async def put(self, bodies: Sequence[bytes]) -> list[bool]:
        sends = [asyncio.ensure_future(_publish(self._channel, self._queue, body)) for body in bodies]
        try:
            async with asyncio.timeout(CONFIRM_S):
                await asyncio.wait(sends)
        except TimeoutError:
            raise QueueAway(f"RabbitMQ did not confirm within {CONFIRM_S:g} s") from None
        finally:
            for send in sends:
                send.cancel()
            answers = await asyncio.gather(*sends, return_exceptions=True)
        return [_is_in(answer) for answer in answers]

    async def close(self) -> None:
        await _closed(self._connection)


def _is_in(answer: object) -> bool:
    """Read a confirmation; True: the broker has the message on its disk."""
    if isinstance(answer, PublishError):
        raise QueueAway("RabbitMQ has no such queue any more")
    if isinstance(answer, DeliveryError):  # a nack: it is full
        return False
    if isinstance(answer, _AWAY):
        raise QueueAway(f"RabbitMQ: {said(answer)}")
    if isinstance(answer, BaseException):
        raise answer
    return True


class RabbitConsumer:
    """`port.BrokerConsumer`. The consumer begins with the first `take`."""

    def __init__(
        self, connection: AbstractConnection, channel: AbstractChannel, queue: RabbitQueue, taker: str
    ) -> None:
        self._connection, self._channel, self._queue, self._taker = connection, channel, queue, taker
        self._came: asyncio.Queue[QueueMessage | None] = asyncio.Queue()  # None: the connection has ended
        self._open: list[int] = []  # tags of what was given to us and is not acknowledged, rising
        self._consumes = False
        self._why: str | None = None
        for each in (connection, channel):
            each.close_callbacks.add(self._ended)

    async def take(self, limit: int, *, wait_s: float) -> list[QueueMessage]:
        if not self._consumes:
            await self._asked(self._consume())
        taken: list[QueueMessage] = []
        try:
            async with asyncio.timeout(wait_s):
                first = await self._came.get()
        except TimeoutError:
            return []
        while first is not None:
            taken.append(first)
            if len(taken) == limit or self._came.empty():
                return taken
            first = self._came.get_nowait()
        raise QueueAway(f"RabbitMQ: {self._why}")

    async def _consume(self) -> None:
        self._consumes = True
        underlay: Any = await self._channel.get_underlay_channel()
        underlay.on_consumer_cancel_callbacks.add(lambda _: self._end("the broker ended the consumer"))
        queue = await self._channel.get_queue(self._queue.name, ensure=False)
        await queue.consume(self._arrived, consumer_tag=self._taker)

    async def _arrived(self, message: AbstractIncomingMessage) -> None:
        assert message.delivery_tag is not None
        self._open.append(message.delivery_tag)
        self._came.put_nowait(QueueMessage(message.delivery_tag, message.body))

    async def done(self, messages: Sequence[QueueMessage]) -> None:
        """Acknowledge in one frame, as far as no earlier message is still in hand."""
        tags = {one.tag for one in messages}
        first = list(takewhile(tags.__contains__, self._open))
        self._open = [tag for tag in self._open if tag not in tags]
        underlay: Any = await self._asked(self._channel.get_underlay_channel())
        if first:
            await self._asked(underlay.basic_ack(first[-1], multiple=True))
        for tag in sorted(tags - set(first)):
            await self._asked(underlay.basic_ack(tag))

    async def aside(self, message: QueueMessage, reason: str) -> None:
        """Publish aside and await the confirm, then acknowledge: a crash between the two puts it aside twice."""
        headers = {"x-surehook-reason": reason[:500]}
        await self._asked(_publish(self._channel, self._queue.aside, message.body, headers))
        await self.done([message])

    async def length(self) -> Length:
        async def count(queue: str) -> int:
            declared = await self._channel.declare_queue(queue, passive=True)
            return declared.declaration_result.message_count or 0

        return Length(await self._asked(count(self._queue.name)), await self._asked(count(self._queue.aside)))

    async def close(self) -> None:
        await _closed(self._connection)

    def _ended(self, _: object, error: BaseException | None = None) -> None:
        self._end("the connection was closed" if error is None else said(error))

    def _end(self, why: str) -> None:
        if self._why is None:
            self._why = why
            self._came.put_nowait(None)

    async def _asked(self, call: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(ANSWER_S):
                return await call
        except _AWAY as error:
            raise QueueAway(f"RabbitMQ: {said(error)}") from None


async def _publish(
    channel: AbstractChannel, queue: str, body: bytes, headers: dict[str, Any] | None = None
) -> None:
    message = aio_pika.Message(body, headers=headers, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
    await channel.default_exchange.publish(message, queue, mandatory=True)


async def _closed(connection: AbstractConnection) -> None:
    try:
        async with asyncio.timeout(CONNECT_S):
            await connection.close()
    except (*_AWAY, RuntimeError):  # RuntimeError: its event loop has ended before it
        pass
