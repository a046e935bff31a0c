"""The queue as the doors use it: put a request in and wait for the confirmation. If there is none, the table takes it.

Requests that wait at the same moment are handed over together, as in the line of arrivals, whose bounds these are. While the
broker is away nobody waits for it: it is tried again in the background.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from surehook.inbox.group_commit import Gathering, Ticket
from surehook.inbox.queue import parcel
from surehook.inbox.queue.port import Broker, Giving, QueueAway
from surehook.inbox.queue.telling import Telling
from surehook.ports.inbox import Request

AWAY_S = (1.0, 10.0)  # first and longest time until it is tried again


class NotTaken(QueueAway):
    """It is full, or was stopped before it could answer."""


class Front(Gathering):
    """For one event loop. `boot` counts seconds."""

    def __init__(self, broker: Broker, telling: Telling, boot: Callable[[], float]) -> None:
        super().__init__()
        self._broker, self._telling, self._boot = broker, telling, boot
        self._giving: Giving | None = None
        self._opening: asyncio.Task[None] | None = None
        self._is_first = True  # nobody knows yet whether it is there: those who ask wait for that
        self._again_at = float("-inf")
        self._wait_s = AWAY_S[0]

    async def confirmed(self, request: Request) -> bool:
        """Put a request into the queue; True: the broker has it for sure. Raises Overloaded: too many wait to hear that."""
        if len(request.body) > parcel.LARGE_BYTES or not self._may_be_asked():
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
        giving, self._giving = self._giving, None
        if giving is not None:
            await giving.close()

    def _may_be_asked(self) -> bool:
        if self._giving is None and self._opening is None and self._boot() >= self._again_at:
            self._opening = asyncio.get_running_loop().create_task(self._open())
        return self._giving is not None or self._is_first

    async def _open(self) -> None:
        try:
            self._giving = await self._broker.giving()
        except Exception as error:
            self._met(error)
        finally:
            self._is_first, self._opening = False, None

    async def _write(self, batch: list[Ticket]) -> None:
        if self._opening is not None:
            await asyncio.wait({self._opening})
        giving = self._giving
        try:
            if giving is not None:
                await self._hand_over(giving, batch)
        except Exception as error:
            self._giving = None
            self._met(error)
            if giving is not None:
                await giving.close()
        finally:
            for ticket in batch:
                if not ticket.done:
                    ticket.finish(None, NotTaken("not confirmed"))

    async def _hand_over(self, giving: Giving, batch: list[Ticket]) -> None:
        shares = parcel.shares([(ticket, len(ticket.request.body)) for ticket in batch])
        sure = await giving.put([parcel.pack([ticket.request for ticket in share]) for share in shares])
        self._wait_s = AWAY_S[0]
        self._telling.over()
        if not all(sure):
            self._telling.full()
        for share, is_in in zip(shares, sure, strict=True):
            for ticket in share:
                ticket.finish([], None if is_in else NotTaken("full"))

    def _met(self, error: Exception) -> None:
        self._telling.met(error)
        self._again_at = self._boot() + self._wait_s
        self._wait_s = min(self._wait_s * 2, AWAY_S[1])
