"""Moving messages: take what waits in the broker, write it into the table as a door would, acknowledge after the commit.

What cannot be written stays in hand and is tried again, while others are taken; nothing is given back to the broker but by the
end of the connection. A database that is away is waited for. Only a message that the table refuses, again and again, while it
takes others, is put aside: to wait for it would be for ever.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence

from msgspec import Struct

from surehook.core.effects import Script
from surehook.core.errors import Overloaded
from surehook.inbox.group_commit import StoredEvents, StoreResult
from surehook.inbox.queue import packing
from surehook.inbox.queue.port import Broker, BrokerConsumer, Length, QueueMessage
from surehook.inbox.queue.trouble import QueueTrouble
from surehook.inbox.safe_log import log
from surehook.inbox.signals import TaskEvent
from surehook.inbox.trouble import MOVING, Away, Trouble
from surehook.ports.inbox import StoredRequest, StoreUnavailable

TAKE = 64  # messages in hand, of 768 KiB at most
IDLE_S = 0.5  # until a mover that waits for messages looks whether it is to stop
LAST_S = 0.1  # for what the broker counts no more, as it is on its way here
AWAY_S = (0.2, 5.0)  # first and longest time until a broker that is away is asked again
REFUSED_MOST = 5  # times that the table refuses a message while it takes others
LOOK_S = 10.0  # between two looks at how much waits
_PASSING = (StoreUnavailable, Overloaded)  # says nothing of the request

Store = Callable[[Sequence[StoredRequest]], Awaitable[list[StoreResult]]]
Stored = Callable[[StoredRequest, StoredEvents], None]


class PendingMessage(Struct, eq=False):
    """A taken message: the part of it that is not in the table yet, and how often that was refused."""

    message: QueueMessage
    requests: list[StoredRequest]
    refused: int = 0
    error: Exception | None = None


class Mover:
    """Moves messages, in an event loop.

    store   writes requests; the outcome of each
    stored  hears of each that is committed
    saw     hears now and then how much waits; None: nobody could look
    """

    def __init__(
        self,
        broker: Broker,
        taker: str,
        store: Store,
        stored: Stored,
        saw: Callable[[Length | None], None],
        trouble_log: QueueTrouble,
        trouble: Trouble,
        boot: Callable[[], float],
    ) -> None:
        self._broker, self._taker = broker, taker
        self._store, self._stored, self._saw = store, stored, saw
        self._trouble_log, self._away, self._boot = trouble_log, Away(trouble, MOVING), boot
        self._pending: list[PendingMessage] = []
        self._looked: float | None = None
        self._stopping = TaskEvent()

    def stop(self) -> None:
        self._stopping.set()

    def until_stopped(self) -> Script[None]:
        yield self.run()

    async def run(self) -> None:
        """Move until stopped."""
        wait_s = AWAY_S[0]
        while not self._stopping.is_set():
            try:
                consumer = await self._broker.consumer(self._taker)
                try:
                    while not self._stopping.is_set():
                        await self._step(consumer)
                        wait_s = AWAY_S[0]
                finally:
                    await consumer.close()
            except Exception as error:
                self._trouble_log.met(error)
                self._saw(None)
                self._looked, self._pending = None, []  # what was in hand comes again
                await self._stopping.wait(wait_s)
                wait_s = min(wait_s * 2, AWAY_S[1])

    async def until_empty(self) -> int:
        """Move what waits now, until nothing does; how many requests. Raises QueueAway, and what the table says of one that it
        does not take."""
        moved, wait_s = 0, IDLE_S
        consumer = await self._broker.consumer(self._taker)
        try:
            while True:
                moved += (some := await self._turn(consumer, wait_s))
                if (error := next((pending.error for pending in self._pending), None)) is not None:
                    raise error
                if not some:
                    return moved
                # RabbitMQ hands over more than is taken at a time, and does not count it any more.
                wait_s = LAST_S if (await consumer.length()).waiting == 0 else IDLE_S
        finally:
            await consumer.close()

    async def _step(self, consumer: BrokerConsumer) -> None:
        await self._look(consumer)
        self._trouble_log.over()
        moved = await self._turn(consumer, 0.0 if self._pending else IDLE_S)
        error = next((pending.error for pending in self._pending if pending.error is not None), None)
        if error is not None and not moved:
            await self._stopping.wait(self._away.wait_s(error))

    async def _turn(self, consumer: BrokerConsumer, wait_s: float) -> int:
        """Take, store, acknowledge; how many requests were stored."""
        await self._fill(consumer, wait_s)
        if not self._pending:
            return 0
        outcomes = iter(
            await self._store([request for pending in self._pending for request in pending.requests])
        )
        moved = sum(self._settle(pending, outcomes) for pending in self._pending)
        whole = [pending.message for pending in self._pending if not pending.requests]
        self._pending = [pending for pending in self._pending if pending.requests]
        await consumer.done(whole)
        if moved:
            self._away.over()
            await self._give_up(consumer)
        return moved

    async def _fill(self, consumer: BrokerConsumer, wait_s: float) -> None:
        room = TAKE - len(self._pending)
        for message in await consumer.take(room, wait_s=wait_s) if room else ():
            try:
                self._pending.append(PendingMessage(message, packing.unpack(message.body)))
            except packing.Unreadable as error:
                log.error("a message of the queue cannot be read and is put aside there: %s", error)
                await consumer.aside(message, f"unreadable: {error}")

    def _settle(self, pending: PendingMessage, outcomes: Iterator[StoreResult]) -> int:
        """Keep what was not stored of a message; how much was."""
        left: list[StoredRequest] = []
        pending.error = None
        for request in pending.requests:
            outcome = next(outcomes)
            if isinstance(outcome, Exception):
                left.append(request)
                pending.error = outcome
            else:
                self._stored(request, outcome)
        moved = len(pending.requests) - len(left)
        pending.requests = left
        return moved

    async def _give_up(self, consumer: BrokerConsumer) -> None:
        """Put aside what was refused too often, now that others were taken."""
        for pending in list(self._pending):
            if pending.error is None or isinstance(pending.error, _PASSING):
                continue
            pending.refused += 1
            if pending.refused >= REFUSED_MOST:
                log.error(
                    "the table refused a message of the queue %d times and took others: it is put aside there (%s)",
                    pending.refused,
                    pending.error,
                )
                await consumer.aside(pending.message, f"refused: {pending.error}")
                self._pending.remove(pending)

    async def _look(self, consumer: BrokerConsumer) -> None:
        now = self._boot()
        if self._looked is None or not 0 <= now - self._looked < LOOK_S:
            self._looked = now
            self._saw(await consumer.length())
