"""Going down in the order that loses nothing and sends nothing twice that need not be.

The loops that lease rows finish the call in hand (rows whose lease nobody knew of would count as sent), what
waits for its commit is answered, what was not begun is handed back, requests under way may finish within the
grace time, and their results are written. What is still under way then is aborted: unsent, it is handed back
as well; begun, it is freed as unknown, and its history says `interrupted`. Last, when errands that hand rows back are done, the
node evicts its own row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from surehook.core.model import Delivery
from surehook.delivery.accept import Accept
from surehook.delivery.arrivals import Arrivals
from surehook.delivery.claim import Claim
from surehook.delivery.cluster_health import ClusterHealth
from surehook.delivery.deliver import Deliver
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.endpoint_state import EndpointState
from surehook.delivery.handoff.handoff import Handoff
from surehook.delivery.holdings import Holdings
from surehook.delivery.node import Node
from surehook.delivery.parking import Parking
from surehook.delivery.record import Record
from surehook.delivery.settings import EngineSettings
from surehook.delivery.unpark import Unpark
from surehook.ports.clock import Clock
from surehook.ports.ledger import Ledger

RELEASE_ROWS = 1000  # deliveries handed back in one transaction


class Shutdown:
    """The way out. `begun` once it has started."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: Clock,
        settings: EngineSettings,
        node: Node,
        dispatch: Dispatch,
        holdings: Holdings,
        accept: Accept,
        claim: Claim,
        unpark: Unpark,
        arrivals: Arrivals,
        parking: Parking,
        deliver: Deliver,
        record: Record,
        handoff: Handoff | None,
        health: ClusterHealth | None,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._settings = settings
        self._node = node
        self._dispatch = dispatch
        self._holdings = holdings
        self._accept = accept
        self._claim = claim
        self._unpark = unpark
        self._arrivals = arrivals
        self._parking = parking
        self._deliver = deliver
        self._record = record
        self._handoff = handoff
        self._health = health
        self.begun = False

    def begin(self) -> None:
        """Take nothing new and start nothing new."""
        self.begun = True
        self._node.stop_running()
        self._accept.close()
        self._dispatch.pause()
        if self._handoff is not None:
            self._handoff.stop()
        if self._health is not None:
            self._health.stop()

    async def wind_down(self, leasing: Sequence[asyncio.Task[None]]) -> None:
        """End the parts in the order above. `leasing` are the running loops that lease rows."""
        self._claim.stop()
        self._unpark.stop()
        await asyncio.gather(*leasing)
        await self._accept.drained()
        await self._hand_back()
        await self._finish_flights()
        await self._parking.drained()
        await self._record.drained()
        while self._holdings.is_giving_back:
            await self._clock.sleep(0.001)
        if self._handoff is not None:
            await self._handoff.close()  # what has to be told while we live
        await self._ledger.evict([self._node.id], now=self._clock.now())

    def forget(self) -> None:
        """This node was evicted, and what it has in memory belongs to others now."""
        self._dispatch.pause()
        self._node.end_life()
        self._deliver.forget()
        for route, delivery in [*self.drain(), *self._record.forget(), *self._parking.forget()]:
            self._dispatch.memory.let_go(route, delivery)
        self._holdings.forget()

    def drain(self) -> list[tuple[EndpointState, Delivery]]:
        """Take everything out of memory that was not begun."""
        return [*self._arrivals.timers.drain(), *self._dispatch.drain_all()]

    async def _hand_back(self) -> None:
        waiting = self.drain()
        for start in range(0, len(waiting), RELEASE_ROWS):
            chunk = waiting[start : start + RELEASE_ROWS]
            rows = [delivery for _, delivery in chunk]
            await self._ledger.release(rows, node=self._node.id, now=self._clock.now())
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
        if self._deliver.unsent:
            await self._ledger.release(self._deliver.unsent, node=self._node.id, now=now)
        if self._deliver.unknown:
            unknown = [delivery.id for delivery in self._deliver.unknown]
            await self._ledger.free(unknown, node=self._node.id, now=now)
