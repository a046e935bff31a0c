"""Movers: they take what waits in the broker, write it into the table as a door would, and acknowledge after the commit.

What cannot be written stays in hand and is tried again, while others are taken; nothing is given back to the broker but by the
end of the connection. A database that is away is waited for. Only a message that the table refuses, again and again, while it
takes others, is put aside: to wait for it would be for ever.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence

from msgspec import Struct

from surehook.core.effects import Script
from surehook.core.errors import Overloaded
from surehook.inbox.group_commit import Ends, Outcome
from surehook.inbox.queue import parcel
from surehook.inbox.queue.port import Broker, Length, Message, Taking
from surehook.inbox.queue.telling import Telling
from surehook.inbox.signals import TaskEvent
from surehook.inbox.trouble import MOVING, Away, Trouble
from surehook.ports.inbox import Request, StoreUnavailable

log = logging.getLogger("surehook.inbox")

TAKE = 64  # messages in hand, of 768 KiB at most
IDLE_S = 0.5  # until a mover that waits for messages looks whether it is to stop
AWAY_S = (0.2, 5.0)  # first and longest time until a broker that is away is asked again
REFUSED_MOST = 5  # times that the table refuses a message while it takes others
LOOK_S = 10.0  # between two looks at how much waits
_PASSING = (StoreUnavailable, Overloaded)  # says nothing of the request

Store = Callable[[Sequence[Request]], Awaitable[list[Outcome]]]
Stored = Callable[[Request, Ends], None]


class Held(Struct, eq=False):
    """A message in hand, what of it is not in the table yet, and how often that was refused."""

    message: Message
    requests: list[Request]
    refused: int = 0
    error: Exception | None = None


class Mover:
    """One who moves, in an event loop.

    store   writes requests; what became of each
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
        telling: Telling,
        trouble: Trouble,
        boot: Callable[[], float],
    ) -> None:
        self._broker, self._taker = broker, taker
        self._store, self._stored, self._saw = store, stored, saw
        self._telling, self._away, self._boot = telling, Away(trouble, MOVING), boot
        self._held: list[Held] = []
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
                taking = await self._broker.taking(self._taker)
                try:
                    while not self._stopping.is_set():
                        await self._step(taking)
                        wait_s = AWAY_S[0]
                finally:
                    await taking.close()
            except Exception as error:
                self._telling.met(error)
                self._saw(None)
                self._looked, self._held = None, []  # what was in hand comes again
                await self._stopping.wait(wait_s)
                wait_s = min(wait_s * 2, AWAY_S[1])

    async def until_empty(self) -> int:
        """Move what waits now, until nothing does; how many requests. Raises QueueAway, and what the table says of one that it
        does not take."""
        moved = 0
        taking = await self._broker.taking(self._taker)
        try:
            while True:
                moved += (some := await self._turn(taking, IDLE_S))
                if (error := next((held.error for held in self._held), None)) is not None:
                    raise error
                if not some or (await taking.length()).waiting == 0:
                    return moved
        finally:
            await taking.close()

    async def _step(self, taking: Taking) -> None:
        await self._look(taking)
        self._telling.over()
        moved = await self._turn(taking, 0.0 if self._held else IDLE_S)
        error = next((held.error for held in self._held if held.error is not None), None)
        if error is not None and not moved:
            await self._stopping.wait(self._away.wait_s(error))

    async def _turn(self, taking: Taking, wait_s: float) -> int:
        """Take, store, acknowledge; how many requests were stored."""
        await self._fill(taking, wait_s)
        if not self._held:
            return 0
        outcomes = iter(await self._store([request for held in self._held for request in held.requests]))
        moved = sum(self._settle(held, outcomes) for held in self._held)
        whole = [held.message for held in self._held if not held.requests]
        self._held = [held for held in self._held if held.requests]
        await taking.done(whole)
        if moved:
            self._away.over()
            await self._give_up(taking)
        return moved

    async def _fill(self, taking: Taking, wait_s: float) -> None:
        room = TAKE - len(self._held)
        for message in await taking.take(room, wait_s=wait_s) if room else ():
            try:
                self._held.append(Held(message, parcel.unpack(message.body)))
            except parcel.Unreadable as error:
                log.error("a message of the queue cannot be read and is put aside there: %s", error)
                await taking.aside(message, f"unreadable: {error}")

    def _settle(self, held: Held, outcomes: Iterator[Outcome]) -> int:
        """Keep what was not stored of a message; how much was."""
        left: list[Request] = []
        held.error = None
        for request in held.requests:
            outcome = next(outcomes)
            if isinstance(outcome, Exception):
                left.append(request)
                held.error = outcome
            else:
                self._stored(request, outcome)
        moved = len(held.requests) - len(left)
        held.requests = left
        return moved

    async def _give_up(self, taking: Taking) -> None:
        """Put aside what was refused too often, now that others were taken."""
        for held in list(self._held):
            if held.error is None or isinstance(held.error, _PASSING):
                continue
            held.refused += 1
            if held.refused >= REFUSED_MOST:
                log.error(
                    "the table refused a message of the queue %d times and took others: it is put aside there (%s)",
                    held.refused,
                    held.error,
                )
                await taking.aside(held.message, f"refused: {held.error}")
                self._held.remove(held)

    async def _look(self, taking: Taking) -> None:
        now = self._boot()
        if self._looked is None or not 0 <= now - self._looked < LOOK_S:
            self._looked = now
            self._saw(await taking.length())
