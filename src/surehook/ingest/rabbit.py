"""The queue that events are taken from, on RabbitMQ: taking, acknowledging, putting aside (aio-pika).

The queue itself is somebody else's and is never made here; the dead-letter queue is ours. A line that breaks is
made anew; what was not acknowledged comes again, and its idempotency key says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage
from aio_pika.exceptions import CONNECTION_EXCEPTIONS, ChannelNotFoundEntity
from yarl import URL

from surehook.core.errors import SettingsError
from surehook.ingest.reading import Message

CONNECT_S = 5.0
HEARTBEAT_S = 10
DETAIL_CHARS = 500  # of the reason in a header
_AWAY = (*CONNECTION_EXCEPTIONS, asyncio.TimeoutError)

for library in ("aiormq", "aio_pika"):
    logging.getLogger(library).setLevel(logging.CRITICAL)


class SourceAway(Exception):
    """The broker cannot be reached, or the line broke."""


class NoSuchQueue(SourceAway):
    """The queue does not exist."""


def parse(source: str) -> tuple[str, str]:
    """`amqp://user:password@host/queue` or `…/vhost/queue` as the broker's URL and the queue. Raises SettingsError."""
    parts = urlsplit(source)
    path = parts.path.strip("/").split("/")
    if parts.scheme not in ("amqp", "amqps") or not parts.hostname or not path[-1] or len(path) > 2:
        raise SettingsError(
            "--from",
            "not the address of a queue",
            hint="amqp://user:password@host:5672/queue, or …/vhost/queue",
        )
    vhost = path[0] if len(path) == 2 else "%2F"
    return urlunsplit((parts.scheme, parts.netloc, f"/{vhost}", parts.query, "")), unquote(path[-1])


class Acks:
    """Which messages are done with, as one number now and then: everything up to it is acknowledged in one frame.

    A frame for each message costs more than all else that is done for it. A message that takes longer holds back
    the acknowledgement of those after it, never their events.
    """

    def __init__(self) -> None:
        self._taken: deque[int] = deque()  # tags in the order of their coming, which is rising
        self._done: set[int] = set()

    def took(self, tag: int) -> None:
        self._taken.append(tag)

    def done(self, tag: int) -> None:
        self._done.add(tag)

    def due(self) -> int | None:
        """The highest tag up to which all is done, once."""
        highest = None
        while self._taken and self._taken[0] in self._done:
            highest = self._taken.popleft()
            self._done.discard(highest)
        return highest


class RabbitDelivered:
    """`intake.Delivered` over one message."""

    __slots__ = ("_line", "_raw", "message")

    def __init__(self, line: RabbitSource, raw: AbstractIncomingMessage) -> None:
        self._line = line
        self._raw = raw
        self.message = Message(
            body=raw.body,
            content_type=raw.content_type,
            message_id=raw.message_id,
            headers=dict(raw.headers or {}),
        )

    def ack(self) -> None:
        self._line.done(self._raw)

    async def put_aside(self, code: str, detail: str, field: str | None) -> None:
        await self._line.put_aside(self._raw, code, detail, field)


class RabbitSource:
    """One connection to one queue, from `open` until `lost`."""

    def __init__(self, connection: AbstractConnection, queue: str, dead_letters: str) -> None:
        self._connection = connection
        self._queue = queue
        self._dead_letters = dead_letters
        self._sending: AbstractChannel | None = None
        self._consumer: tuple[Any, str] | None = None
        self._taking: Any = None  # the channel that messages come by
        self._acks = Acks()
        self._is_acking = False
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(cls, url: str, queue: str, dead_letters: str) -> RabbitSource:
        """Connect; the queue must be there. Raises SourceAway, NoSuchQueue."""
        connection: AbstractConnection | None = None
        given = URL(url)
        try:
            async with asyncio.timeout(CONNECT_S):
                properties: Any = {"connection_name": "surehook ingest"}
                if "heartbeat" not in given.query:
                    given = given.update_query(heartbeat=HEARTBEAT_S)
                connection = await aio_pika.connect(given, client_properties=properties)
                source = cls(connection, queue, dead_letters)
                await source._prepare()
                return source
        except _AWAY as error:
            if connection is not None:
                await _close(connection)
            if isinstance(error, ChannelNotFoundEntity):
                raise NoSuchQueue(f"there is no queue {queue}") from error
            said = str(error) or type(error).__name__
            raise SourceAway(said.replace(given.password, "***") if given.password else said) from error

    async def _prepare(self) -> None:
        self._connection.close_callbacks.add(self._closed)
        looking = await self._connection.channel()
        await looking.declare_queue(self._queue, passive=True)
        await looking.close()
        self._sending = await self._connection.channel(publisher_confirms=True, on_return_raises=True)
        await self._sending.declare_queue(
            self._dead_letters, durable=True, arguments={"x-queue-type": "quorum"}
        )
        self._sending.close_callbacks.add(self._closed)

    async def take(self, took: Callable[[RabbitDelivered], None], *, prefetch: int) -> None:
        """Begin to take messages, at most `prefetch` unacknowledged. Raises SourceAway."""

        async def came(raw: AbstractIncomingMessage) -> None:
            assert raw.delivery_tag is not None
            self._acks.took(raw.delivery_tag)
            took(RabbitDelivered(self, raw))

        try:
            async with asyncio.timeout(CONNECT_S):
                channel = await self._connection.channel()
                channel.close_callbacks.add(self._closed)
                await channel.set_qos(prefetch_count=prefetch)
                self._taking = await channel.get_underlay_channel()
                self._taking.on_consumer_cancel_callbacks.add(self._cancelled)
                queue = await channel.get_queue(self._queue, ensure=False)
                self._consumer = (queue, await queue.consume(came))
        except _AWAY as error:
            raise SourceAway(str(error) or type(error).__name__) from error

    async def pause(self) -> None:
        """Take no more; what was taken may still be acknowledged."""
        if self._consumer is not None and not self._ended.done():
            queue, tag = self._consumer
            try:
                await queue.cancel(tag)
            except _AWAY as error:
                self._end(str(error))

    async def put_aside(
        self, raw: AbstractIncomingMessage, code: str, detail: str, field: str | None
    ) -> None:
        assert self._sending is not None
        reason = {
            "surehook-code": code,
            "surehook-detail": detail[:DETAIL_CHARS],
            "surehook-queue": self._queue,
        }
        if field is not None:
            reason["surehook-field"] = field
        copy = aio_pika.Message(
            raw.body, headers={**(raw.headers or {}), **reason}, content_type=raw.content_type,
            content_encoding=raw.content_encoding, message_id=raw.message_id, timestamp=raw.timestamp, type=raw.type,
            app_id=raw.app_id, correlation_id=raw.correlation_id, delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        )  # fmt: skip
        try:
            await self._sending.default_exchange.publish(copy, self._dead_letters, mandatory=True)
        except _AWAY as error:
            self._end(str(error) or type(error).__name__)
            return
        self.done(raw)

    def done(self, raw: AbstractIncomingMessage) -> None:
        """The message may be forgotten. All that is said in one step is acknowledged together."""
        assert raw.delivery_tag is not None
        self._acks.done(raw.delivery_tag)
        if not self._is_acking and not self._ended.done():
            self._is_acking = True
            task = asyncio.get_running_loop().create_task(self._acknowledge())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _acknowledge(self) -> None:
        self._is_acking = False
        highest = self._acks.due()
        if highest is None or self._ended.done():
            return
        try:
            await self._taking.basic_ack(highest, multiple=True)
        except _AWAY as error:
            self._end(str(error) or type(error).__name__)

    async def lost(self) -> str:
        """Wait until the line is gone; returns the reason."""
        return await asyncio.shield(self._ended)

    async def close(self) -> None:
        while self._tasks:
            await asyncio.wait(set(self._tasks))
        self._end("closed")
        await _close(self._connection)

    def _closed(self, _: object, error: BaseException | None = None) -> None:
        self._end(str(error) if error is not None else "the connection was closed")

    def _cancelled(self, _: object) -> None:
        self._end("the broker ended the consumer: the queue was deleted, or moves")

    def _end(self, reason: str) -> None:
        if not self._ended.done():
            self._ended.set_result(reason)


async def _close(connection: AbstractConnection) -> None:
    try:
        async with asyncio.timeout(CONNECT_S):
            await connection.close()
    except _AWAY:
        pass
