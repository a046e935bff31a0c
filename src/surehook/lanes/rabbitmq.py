"""The broker port over RabbitMQ: two quorum queues, publisher confirms, acknowledgements (aio-pika).

A line is one connection with a channel for each direction. It never mends itself: a closed connection or channel,
a consumer that the broker cancelled (its queue was deleted, its node went), a message that no queue took, a
confirm that does not come in time, each ends the whole line, and the caller makes a new one, which declares the
queue again. One way to be broken is easier to be sure of than four.

The queues are declared with a delivery limit, since from version 4 RabbitMQ has one anyway: a message that
comes back too often is dropped, and the ledger hands its rows over again. A queue that exists with other
arguments (an operator's) is used as it is, with a warning.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage
from aio_pika.exceptions import CONNECTION_EXCEPTIONS, ChannelPreconditionFailed
from yarl import URL

from surehook.core import parcel
from surehook.core.model import LANES, Lane
from surehook.ports.handoff import BrokerAway, Parcel

CONNECT_S = 5.0  # to connect and to declare
CONFIRM_S = 10.0  # a confirm that takes longer than a quorum's own election is not coming
HEARTBEAT_S = 10  # a peer that is gone without a word is noticed within two of them
DELIVERY_LIMIT = 20
ARGUMENTS: Mapping[str, str | int] = {"x-queue-type": "quorum", "x-delivery-limit": DELIVERY_LIMIT}

_AWAY = (*CONNECTION_EXCEPTIONS, asyncio.TimeoutError, ssl.SSLError)

log = logging.getLogger("surehook.lanes")
# What they would log, with its traceback, every few seconds while a broker is away, our caller tells once.
for library in ("aiormq", "aio_pika"):
    logging.getLogger(library).setLevel(logging.CRITICAL)


def queue_name(lane: Lane, ledger: str = "") -> str:
    """The lane's queue, of the ledger with this identity: installations may share a virtual host."""
    return ".".join(part for part in ("surehook", ledger, LANES[lane]) if part)


NAMELESS = (
    "the queues carry no name of their ledger, because this database user may not call pg_control_system(): a second "
    "installation on this virtual host would take this one's messages. As a superuser: "
    "GRANT EXECUTE ON FUNCTION pg_control_system() TO that user, then restart every process"
)


async def _nameless() -> str:
    return ""


class RabbitBroker:
    """`ports.handoff.LaneBroker` on one URL (amqp:// or amqps://, the path is the virtual host), or on several, separated
    by commas, of which each try takes the next: the nodes of one cluster."""

    def __init__(
        self, url: str, *, name: str = "surehook", ledger: Callable[[], Awaitable[str]] = _nameless
    ) -> None:
        """`name` is what RabbitMQ's own tools show of the connection. `ledger` answers with the identity of the ledger that the
        queues belong to."""
        given = [URL(each.strip()) for each in url.split(",")]
        self._urls = [
            each if "heartbeat" in each.query else each.update_query(heartbeat=HEARTBEAT_S) for each in given
        ]
        self._name = name
        self._ledger = ledger
        self._identity: str | None = None
        self._tries = 0

    async def connect(self, lane: Lane) -> RabbitLine:
        if self._identity is None:
            self._identity = await self._ledger()
            if not self._identity and self._ledger is not _nameless:
                log.warning(NAMELESS)
        url = self._urls[self._tries % len(self._urls)]
        self._tries += 1
        connection: AbstractConnection | None = None
        try:
            async with asyncio.timeout(CONNECT_S):
                properties: Any = {"connection_name": self._name}
                connection = await aio_pika.connect(url, client_properties=properties)
                return await RabbitLine.open(connection, queue_name(lane, self._identity))
        except _AWAY as error:
            if connection is not None:
                await _close(connection)
            said = _sentence(error)
            raise BrokerAway(said.replace(url.password, "***") if url.password else said) from error
        except BaseException:
            if connection is not None:
                await _close(connection)
            raise


class RabbitParcel:
    """One message; `ack` writes and does not wait."""

    __slots__ = ("_line", "_message", "body")

    def __init__(self, line: RabbitLine, message: AbstractIncomingMessage) -> None:
        self._line = line
        self._message = message
        self.body = message.body

    def ack(self) -> None:
        self._line.ack(self._message)


class RabbitLine:
    """`ports.handoff.LaneConnection`: one connection for one queue."""

    def __init__(self, connection: AbstractConnection, queue: str, sending: AbstractChannel) -> None:
        self._connection = connection
        self._queue = queue
        self._sending = sending
        self._reason: str | None = None
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._acks: set[asyncio.Task[None]] = set()
        connection.close_callbacks.add(self._closed)
        sending.close_callbacks.add(self._closed)

    @classmethod
    async def open(cls, connection: AbstractConnection, queue: str) -> RabbitLine:
        """The queue in place, and a channel to send to it."""
        await _declare(connection, queue)
        sending = await connection.channel(publisher_confirms=True, on_return_raises=True)
        return cls(connection, queue, sending)

    async def publish(self, bodies: Sequence[bytes]) -> None:
        exchange = self._sending.default_exchange
        sends = [
            asyncio.ensure_future(exchange.publish(_message(body), self._queue, mandatory=True))
            for body in bodies
        ]
        try:
            async with asyncio.timeout(CONFIRM_S):
                await asyncio.gather(*sends)
        except _AWAY as error:
            self._end("no confirm in time" if isinstance(error, TimeoutError) else _sentence(error))
            raise BrokerAway(self._reason or "lost") from error
        finally:
            for send in sends:
                send.cancel()
            await asyncio.gather(*sends, return_exceptions=True)

    async def consume(self, take: Callable[[Parcel], None], *, prefetch: int) -> None:
        async def came(message: AbstractIncomingMessage) -> None:
            if self._reason is None:
                take(RabbitParcel(self, message))

        try:
            async with asyncio.timeout(CONNECT_S):
                channel = await self._connection.channel()
                channel.close_callbacks.add(self._closed)
                await channel.set_qos(prefetch_count=prefetch)
                underlay: Any = await channel.get_underlay_channel()
                underlay.on_consumer_cancel_callbacks.add(self._cancelled)
                await (await channel.get_queue(self._queue, ensure=False)).consume(came)
        except _AWAY as error:
            self._end(f"the queue {self._queue} gives nothing: {_sentence(error)}")
            raise BrokerAway(self._reason or "lost") from error

    def ack(self, message: AbstractIncomingMessage) -> None:
        if self._reason is not None:
            return
        task = asyncio.get_running_loop().create_task(self._ack(message))
        self._acks.add(task)
        task.add_done_callback(self._acks.discard)

    async def _ack(self, message: AbstractIncomingMessage) -> None:
        try:
            await message.ack()
        except _AWAY as error:
            self._end(_sentence(error))

    async def lost(self) -> str:
        return await asyncio.shield(self._ended)

    async def close(self) -> None:
        if self._acks:
            await asyncio.gather(*self._acks, return_exceptions=True)
        self._end("closed")
        await _close(self._connection)

    def _closed(self, _: object, error: BaseException | None = None) -> None:
        self._end(_sentence(error) if error is not None else "the connection was closed")

    def _cancelled(self, _: object) -> None:
        self._end("the broker ended a consumer: its queue is gone or moves")

    def _end(self, reason: str) -> None:
        if self._reason is None:
            self._reason = reason
            if not self._ended.done():
                self._ended.set_result(reason)


async def _declare(connection: AbstractConnection, queue: str) -> None:
    channel = await connection.channel()
    try:
        await channel.declare_queue(queue, durable=True, arguments={**ARGUMENTS})
    except ChannelPreconditionFailed as error:
        log.warning(
            "queue %s has other arguments than ours and is used as it is: %s", queue, _sentence(error)
        )
        channel = await connection.channel()
        await channel.declare_queue(queue, passive=True)
    await channel.close()


def _message(body: bytes) -> aio_pika.Message:
    return aio_pika.Message(
        body, content_type=parcel.MEDIA_TYPE, delivery_mode=aio_pika.DeliveryMode.PERSISTENT
    )


async def _close(connection: AbstractConnection) -> None:
    try:
        async with asyncio.timeout(CONNECT_S):
            await connection.close()
    except _AWAY:
        pass


def _sentence(error: BaseException) -> str:
    """What went wrong; never the URL, which holds a password."""
    return str(error) or type(error).__name__
