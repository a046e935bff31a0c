"""The queue that events are taken from, on RabbitMQ: taking, acknowledging, putting aside (aio-pika).

The queue belongs to somebody else and is never created here; the dead-letter queue is ours. A lost connection is
made anew; what was not acknowledged comes again, and its idempotency key makes it a repeat.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import aio_pika
from aio_pika.abc import AbstractConnection
from aio_pika.exceptions import CONNECTION_EXCEPTIONS, ChannelNotFoundEntity
from aiormq.abc import DeliveredMessage
from yarl import URL

from surehook.core.errors import SettingsError
from surehook.ingest import frames
from surehook.ingest.acks import Acks
from surehook.ingest.aside import dead_letter
from surehook.ingest.reading import BrokerMessage

CONNECT_S = 5.0
HEARTBEAT_S = 10
_AWAY = (*CONNECTION_EXCEPTIONS, asyncio.TimeoutError)

for library in ("aiormq", "aio_pika"):
    logging.getLogger(library).setLevel(logging.CRITICAL)


class SourceAway(Exception):
    """The broker cannot be reached, or the line broke."""


class NoSuchQueue(SourceAway):
    """The queue does not exist."""


def parse(source: str) -> tuple[str, str]:
    """`amqp://user:password@host/queue` or `…/vhost/queue` as the broker's URL and the queue. Raises SettingsError."""
    wrong = SettingsError(
        "--from",
        "not the address of a queue",
        hint="amqp://user:password@host:5672/queue, or …/vhost/queue",
    )
    try:
        parts = urlsplit(source)
        usable = parts.scheme in ("amqp", "amqps") and parts.hostname and parts.port != 0
    except ValueError:  # brackets without an end, a port that is none
        raise wrong from None
    path = parts.path.strip("/").split("/")
    if not usable or not path[-1] or len(path) > 2:
        raise wrong
    vhost = path[0] if len(path) == 2 else "%2F"
    return urlunsplit((parts.scheme, parts.netloc, f"/{vhost}", parts.query, "")), unquote(path[-1])


class RabbitDelivered:
    """`intake.Delivered` over one message."""

    __slots__ = ("_line", "_raw", "message")

    def __init__(self, line: RabbitSource, raw: DeliveredMessage) -> None:
        self._line = line
        self._raw = raw
        given = raw.header.properties
        headers = given.headers or {}
        self.message = BrokerMessage(
            body=bytes(raw.body),
            content_type=given.content_type,
            message_id=given.message_id,
            headers=headers,
            unread=str(headers[frames.UNREAD]) if frames.UNREAD in headers else None,
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
        self._sending: Any = None  # the channel that dead letters go by
        self._taking: Any = None  # … and that messages come by
        self._consumer: str | None = None
        self._acks = Acks()
        self._is_acking = False
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(cls, url: str, queue: str, dead_letters: str) -> RabbitSource:
        """Connect; the queue must be there. Raises SourceAway, NoSuchQueue."""
        frames.widen()
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
        except (*_AWAY, NoSuchQueue) as error:
            if connection is not None:
                await _close(connection)
            if isinstance(error, NoSuchQueue):
                raise
            said = str(error) or type(error).__name__
            raise SourceAway(said.replace(given.password, "***") if given.password else said) from error

    async def _prepare(self) -> None:
        self._connection.close_callbacks.add(self._closed)
        if not await self._is_there(self._queue):
            raise NoSuchQueue(f"there is no queue {self._queue}")
        sending = await self._connection.channel(publisher_confirms=True, on_return_raises=True)
        if not await self._is_there(self._dead_letters):  # one that is there may be of any kind
            await sending.declare_queue(
                self._dead_letters, durable=True, arguments={"x-queue-type": "quorum"}
            )
        sending.close_callbacks.add(self._closed)
        self._sending = await sending.get_underlay_channel()

    async def _is_there(self, queue: str) -> bool:
        looking = await self._connection.channel()
        try:
            await looking.declare_queue(queue, passive=True)
        except ChannelNotFoundEntity:
            return False
        await looking.close()
        return True

    async def take(self, took: Callable[[RabbitDelivered], None], *, prefetch: int) -> None:
        """Begin to take messages, at most `prefetch` unacknowledged. Raises SourceAway."""

        async def came(raw: DeliveredMessage) -> None:
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
                # Below aio-pika, which would turn properties into its own kinds and drop a message that it cannot turn.
                self._consumer = (await self._taking.basic_consume(self._queue, came)).consumer_tag
        except _AWAY as error:
            raise SourceAway(str(error) or type(error).__name__) from error

    async def pause(self) -> None:
        """Take no more; what was taken may still be acknowledged."""
        if self._consumer is not None and not self._ended.done():
            try:
                await self._taking.basic_cancel(self._consumer)
            except _AWAY as error:
                self._end(str(error))

    async def put_aside(self, raw: DeliveredMessage, code: str, detail: str, field: str | None) -> None:
        reason = {"code": code, "detail": detail, "field": field, "queue": self._queue}
        copy = dead_letter(raw.header.properties, reason)
        try:
            await self._sending.basic_publish(
                raw.body, routing_key=self._dead_letters, properties=copy, mandatory=True
            )
        except _AWAY as error:
            self._end(str(error) or type(error).__name__)
            return
        self.done(raw)

    def done(self, raw: DeliveredMessage) -> None:
        """Note that the message is done with. All messages of one step of the loop are acknowledged together."""
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
