"""The port to a broker. One suite holds every adapter to it: `tests/inbox/queue/test_contract.py`.

A publisher and a consumer are one connection each. They never reconnect: after QueueAway the caller closes it and asks for
another one. One way to be broken is easier to be sure of than several.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from surehook.core.errors import SurehookError


class QueueAway(SurehookError):
    """The broker does not answer, or the connection is lost. What was under way may or may not be in it."""


class QueueUnfit(QueueAway):
    """It answers, and must not be accepted into: it could lose what it confirmed. The text says what to set."""


class QueueMessage(Struct, frozen=True):
    """A message that was taken: `tag` is the broker's name for it."""

    tag: Any
    body: bytes


class Length(Struct, frozen=True):
    """Messages that wait, and those put aside. RabbitMQ does not count what movers have in hand."""

    waiting: int
    aside: int


class BrokerPublisher(Protocol):
    async def put(self, bodies: Sequence[bytes]) -> list[bool]:
        """Hand over; returns when the broker has answered for all of them, within CONFIRM_S: whether each is on its disk.
        False: it is full, or does not want this one. Raises QueueAway."""
        ...

    async def close(self) -> None:
        """Let the connection go; never raises."""
        ...


class BrokerConsumer(Protocol):
    async def take(self, limit: int, *, wait_s: float) -> list[QueueMessage]:
        """Take at most `limit` messages, first those that it had before; waits `wait_s` for the first. Raises QueueAway."""
        ...

    async def done(self, messages: Sequence[QueueMessage]) -> None:
        """Acknowledge messages that are in the table. Raises QueueAway; then they come again."""
        ...

    async def aside(self, message: QueueMessage, reason: str) -> None:
        """Put a message out of the way of the others, where people find it. Raises QueueAway; then it may come again."""
        ...

    async def length(self) -> Length: ...

    async def close(self) -> None:
        """Let the connection go; never raises. What was taken and not done comes again, to whoever takes."""
        ...


class Broker(Protocol):
    async def publisher(self) -> BrokerPublisher:
        """Open a connection to hand over on. Raises QueueAway, QueueUnfit."""
        ...

    async def consumer(self, taker: str) -> BrokerConsumer:
        """Open a connection to take from. `taker` is unlike any other that takes at the same time. Raises QueueAway."""
        ...


CONNECT_S = 2.0  # to connect, to look at what the broker is set to, and to declare
CONFIRM_S = 2.0  # until requests go to the table: senders wait five to ten seconds for an answer
