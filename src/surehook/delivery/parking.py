"""Putting aside: one batched update for everything that could not be sent now. `unpark.py` brings it back.

A backlog of a million costs nothing while it waits.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from surehook.core.errors import LedgerBroken, NodeEvicted
from surehook.core.model import Delivery
from surehook.delivery.batch import Batches
from surehook.delivery.claim_looks import ClaimLooks
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.endpoint_state import EndpointState, UrlBreaker
from surehook.delivery.holdings import Holdings
from surehook.delivery.loops import Loops
from surehook.delivery.node import Node
from surehook.delivery.refill import Refill
from surehook.delivery.settings import EngineSettings
from surehook.ports.clock import Clock
from surehook.ports.ledger import Ledger


class Parking:
    """Held deliveries on their way into parking."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: Clock,
        settings: EngineSettings,
        node: Node,
        loops: Loops,
        dispatch: Dispatch,
        holdings: Holdings,
        refill: Refill,
        looks: ClaimLooks,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._node = node
        self._loops = loops
        self._dispatch = dispatch
        self._holdings = holdings
        self._refill = refill
        self._looks = looks
        self._batches: Batches[tuple[EndpointState, Delivery, str]] = Batches(
            self._flush, failed=self._broke, rows=1000, window_s=settings.record_window_s
        )

    def put(self, route: EndpointState, delivery: Delivery, reason: str) -> None:
        """A held delivery cannot be sent now; its memory is free once the ledger has it."""
        self._batches.put((route, delivery, reason))

    def put_queue(self, route: EndpointState) -> None:
        """Everything that waits for an endpoint that cannot take it (breaker opened, status changed)."""
        reason = route.block_reason
        if reason is not None:
            for delivery in self._dispatch.drain(route):
                self.put(route, delivery, reason)

    def heed(self, breaker: UrlBreaker) -> None:
        """It opened or closed: every endpoint that shares it parks its queue, or may take back."""
        for route in breaker.routes:
            if route.block_reason is None:
                self._refill.freed(route)
            else:
                self.put_queue(route)
                self._refill.wants_work(route)

    async def drained(self) -> None:
        await self._batches.drained()

    def forget(self) -> list[tuple[EndpointState, Delivery]]:
        """This node was evicted: what is on its way into parking was freed."""
        return [(route, delivery) for route, delivery, _ in self._batches.forget()]

    def held_ids(self) -> list[bytes]:
        """Deliveries that are on their way into parking."""
        return [delivery.id for _, delivery, _ in self._batches.items()]

    async def _flush(self, batch: list[tuple[EndpointState, Delivery, str]]) -> None:
        node = self._node.id  # who holds them, however often it is tried
        by_reason: dict[str, list[Delivery]] = {}
        for _, delivery, reason in batch:
            by_reason.setdefault(reason, []).append(delivery)
        for reason, deliveries in by_reason.items():
            with suppress(NodeEvicted, LedgerBroken):
                # others have them, or nobody will: none is here any more
                await self._loops.persist("park", partial(self._park, deliveries, reason, node))
        for route, delivery, reason in batch:
            self._dispatch.memory.let_go(route, delivery)
            route.may_have_parked(reason)
            self._refill.wants_work(route)
        self._holdings.let_go([delivery.id for _, delivery, _ in batch])
        # Who waits for a share is not asked again here: what was parked for want of one would be taken back at once.
        self._looks.freed()

    async def _park(self, deliveries: list[Delivery], reason: str, node: bytes) -> None:
        await self._ledger.park(deliveries, reason, node=node, now=self._clock.now())

    def _broke(self, batch: list[tuple[EndpointState, Delivery, str]], error: Exception) -> None:
        self._loops.defect("park", error)
