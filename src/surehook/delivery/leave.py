"""Going down in the order that loses nothing and sends nothing twice that need not be.

The loops that lease rows finish the call in hand (rows whose lease nobody knew of would count as sent), what
waits for its commit is answered, what was not begun is handed back, requests under way may finish within the
grace time, and their results are written. What is still under way then is aborted: unsent, it is handed back
as well; begun, it is freed as unknown, and its history says `interrupted`. Last, when errands that hand rows back are done, the
node buries its own row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence

from surehook.core.model import Delivery
from surehook.delivery.accept import Accept
from surehook.delivery.claim import Claim
from surehook.delivery.deliver import Deliver
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.park import Park
from surehook.delivery.record import Record
from surehook.delivery.routes import Route
from surehook.delivery.settings import EngineSettings
from surehook.ports.clock import Clock
from surehook.ports.ledger import Ledger

RELEASE_ROWS = 1000  # deliveries handed back in one transaction


class Leave:
    """The way out. `begun` once the shutdown has started: from then on it is told of aborted requests."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: Clock,
        settings: EngineSettings,
        accept: Accept,
        claim: Claim,
        park: Park,
        dispatch: Dispatch,
        deliver: Deliver,
        record: Record,
        node: Callable[[], bytes],
        going_back: Collection[bytes],
    ) -> None:
        """`going_back`: rows that errands hand back at this moment."""
        self._ledger = ledger
        self._clock = clock
        self._settings = settings
        self._accept = accept
        self._claim = claim
        self._park = park
        self._dispatch = dispatch
        self._deliver = deliver
        self._record = record
        self._node = node
        self._going_back = going_back
        self.before_burial: Callable[[], Awaitable[None]] | None = None  # what has to be told while we live
        self._unsent: list[Delivery] = []  # aborted before a byte was written
        self._unknown: list[Delivery] = []  # … after
        self.begun = False

    def begin(self) -> None:
        """Take nothing new and start nothing new."""
        self.begun = True
        self._accept.closed = True
        self._dispatch.paused = True

    async def wind_down(self, leasing: Sequence[asyncio.Task[None]]) -> None:
        """Everything of the head of this file. `leasing` are the running loops that lease rows."""
        self._claim.stop()
        self._park.stop()
        await asyncio.gather(*leasing)
        await self._accept.drained()
        await self._hand_back()
        await self._finish_flights()
        await self._park.drained()
        await self._record.drained()
        while self._going_back:
            await self._clock.sleep(0.001)
        if self.before_burial is not None:
            await self.before_burial()
        await self._ledger.bury([self._node()], now=self._clock.now())

    def aborted(self, route: Route, delivery: Delivery, unknown: bool) -> None:
        """A request ended before its answer, by our own doing."""
        (self._unknown if unknown else self._unsent).append(delivery)
        self._dispatch.memory.let_go(route, delivery)

    def forget(self) -> None:
        """This node was buried, and what it has in memory belongs to others now."""
        self._deliver.forget()
        for route, delivery in [*self.drain(), *self._record.forget(), *self._park.forget()]:
            self._dispatch.memory.let_go(route, delivery)

    def drain(self) -> list[tuple[Route, Delivery]]:
        """Take everything out of memory that was not begun."""
        waiting: list[tuple[Route, Delivery]] = list(self._claim.timers.drain())
        for route in self._dispatch.memory.holders:
            waiting += [(route, delivery) for delivery in self._dispatch.drain(route)]
        return waiting

    async def _hand_back(self) -> None:
        waiting = self.drain()
        for start in range(0, len(waiting), RELEASE_ROWS):
            chunk = waiting[start : start + RELEASE_ROWS]
            rows = [delivery for _, delivery in chunk]
            await self._ledger.release(rows, node=self._node(), now=self._clock.now())
            for route, delivery in chunk:
                self._dispatch.memory.let_go(route, delivery)

    async def _finish_flights(self) -> None:
        until = self._clock.boot() + self._settings.grace_s
        while self._deliver.flights and self._clock.boot() < until:
            await self._clock.sleep(0.02)
        for flight in list(self._deliver.flights):
            if flight.exchange is not None:
                flight.exchange.abort()
        while self._deliver.flights:
            await self._clock.sleep(0.001)
        now = self._clock.now()
        if self._unsent:
            await self._ledger.release(self._unsent, node=self._node(), now=now)
        if self._unknown:
            unknown = [delivery.id for delivery in self._unknown]
            await self._ledger.free(unknown, node=self._node(), now=now)
