"""The queue as the doors use it: put a request in and wait for the confirmation. If there is none, the table takes it.

Requests that wait at the same moment are handed over together, as in group commit, whose bounds these are. While the
broker is away nobody waits for it: it is tried again in the background.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from surehook.inbox.group_commit import LoopBatches, Ticket
from surehook.inbox.queue import packing
from surehook.inbox.queue.port import Broker, BrokerPublisher, QueueAway
from surehook.inbox.queue.trouble import QueueTrouble
from surehook.ports.inbox import StoredRequest

AWAY_S = (1.0, 10.0)  # first and longest time until it is tried again


class NotConfirmed(QueueAway):
    """It is full, or was stopped before it could answer."""


class Publisher(LoopBatches):
    """Publishes for one event loop. `boot` counts seconds."""

    def __init__(self, broker: Broker, trouble_log: QueueTrouble, boot: Callable[[], float]) -> None:
        super().__init__()
        self._broker, self._trouble_log, self._boot = broker, trouble_log, boot
        self._publisher: BrokerPublisher | None = None
        self._opening: asyncio.Task[None] | None = None
        self._is_first = True  # nobody knows yet whether it is there: those who ask wait for that
        self._again_at = float("-inf")
        self._wait_s = AWAY_S[0]

    async def confirmed(self, request: StoredRequest) -> bool:
        """Put a request into the queue; True: the broker has it for sure. Raises Overloaded: too many wait to hear that."""
        if len(request.body) > packing.LARGE_BYTES or not self._may_be_asked():
            return False
        try:
            await self.put(request)
        except QueueAway:
            return False
        return True

    async def close(self) -> None:
        """Answer those who wait, and let the connection go."""
        await self.drained()
        if self._opening is not None:
            await self._opening
        publisher, self._publisher = self._publisher, None
        if publisher is not None:
            await publisher.close()

    def _may_be_asked(self) -> bool:
        if self._publisher is None and self._opening is None and self._boot() >= self._again_at:
            self._opening = asyncio.get_running_loop().create_task(self._open())
        return self._publisher is not None or self._is_first

    async def _open(self) -> None:
        try:
            self._publisher = await self._broker.publisher()
        except Exception as error:
            self._met(error)
        finally:
            self._is_first, self._opening = False, None

    async def _write(self, batch: list[Ticket]) -> None:
        if self._opening is not None:
            await asyncio.wait({self._opening})
        publisher = self._publisher
        try:
            if publisher is not None:
                await self._hand_over(publisher, batch)
        except Exception as error:
            self._publisher = None
            self._met(error)
            if publisher is not None:
                await publisher.close()
        finally:
            for ticket in batch:
                if not ticket.done:
                    ticket.finish(None, NotConfirmed("not confirmed"))

    async def _hand_over(self, publisher: BrokerPublisher, batch: list[Ticket]) -> None:
        shares = packing.shares([(ticket, len(ticket.request.body)) for ticket in batch])
        sure = await publisher.put([packing.pack([ticket.request for ticket in share]) for share in shares])
        self._wait_s = AWAY_S[0]
        self._trouble_log.over()
        if not all(sure):
            self._trouble_log.full()
        for share, is_in in zip(shares, sure, strict=True):
            for ticket in share:
                ticket.finish([], None if is_in else NotConfirmed("full"))

    def _met(self, error: Exception) -> None:
        self._trouble_log.met(error)
        self._again_at = self._boot() + self._wait_s
        self._wait_s = min(self._wait_s * 2, AWAY_S[1])
