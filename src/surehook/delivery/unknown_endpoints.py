"""Rows whose endpoint memory does not know: it was deleted, or memory is behind the ledger.

Another process may have made the endpoint a moment ago and accepted events for it. So the ledger is asked before
anything is ended: what is cancelled on a stale word would be lost.

Who deletes an endpoint ends what nobody holds of it. A row that was held then comes back to the ledger behind that walk: its
result was on its way, or its node had not heard. By its due time a claim finds it, which may be days later. So those
who gave rows back look once more whether the endpoints are there, and ask only then: whatever was deleted before
this is known by now, and who deletes one after it walks over rows that are in the ledger.

What a process knew of that dies with it, and who frees rows does not know their endpoints. So one that starts, evicts another or
frees rows after a lost answer looks once at the endpoints of all rows that nobody holds.
"""

from __future__ import annotations

from collections.abc import Sequence

from surehook.core.errors import LedgerUnavailable
from surehook.core.model import Delivery
from surehook.delivery.claim_looks import ClaimLooks
from surehook.delivery.directory import Directory
from surehook.delivery.endings import Endings
from surehook.delivery.holdings import Holdings
from surehook.delivery.loading import Loader
from surehook.delivery.loops import Loops
from surehook.delivery.managing import WholeLedger
from surehook.delivery.node import Node
from surehook.delivery.parked_walk import walk
from surehook.ports.clock import Clock
from surehook.ports.ledger import AgedGroup, ParkedGroup

ENDED_ROWS = 1_000  # unheld rows of one endpoint ended at a time
REST_S = 0.02  # between two steps of a walk over everything: accepts go first
WHENEVER = 1 << 47  # later than every birth, in milliseconds


class UnknownEndpoints:
    """Ends them, as cancelled with their endpoint."""

    def __init__(
        self,
        *,
        ledger: WholeLedger,
        clock: Clock,
        node: Node,
        loops: Loops,
        directory: Directory,
        loader: Loader,
        endings: Endings,
        holdings: Holdings,
        looks: ClaimLooks,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._node = node
        self._loops = loops
        self._directory = directory
        self._loader = loader
        self._endings = endings
        self._holdings = holdings
        self._looks = looks
        self._everywhere = True

    def look_everywhere(self) -> None:
        """Rows may be in the ledger of which nobody here knows the endpoint."""
        self._everywhere = True

    def removed(self, endpoint: bytes) -> None:
        """It was deleted, and something may be left of it: the next look ends that."""
        self._holdings.rescheduled(endpoint)

    def claimed(self, deliveries: Sequence[Delivery]) -> None:
        """Claimed rows whose endpoint memory does not know: hand them back and let the ledger end them."""
        work = self._end_claimed(deliveries, self._node.id)
        self._loops.do("end orphans", lambda: self._holdings.give_back(deliveries, work))

    async def _end_claimed(self, deliveries: Sequence[Delivery], node: bytes) -> None:
        """Hand claimed rows back, and let the ledger end what it has of endpoints that are gone. Until nothing is left to do,
        and memory has caught up where it has to, they would be claimed in vain."""
        endpoints = {delivery.endpoint for delivery in deliveries}
        try:
            await self._ledger.release(deliveries, node=node, now=self._clock.now())
            is_behind = False
            for endpoint in sorted(endpoints):
                if await self._ledger.endpoint(endpoint) is not None:
                    is_behind = True
                else:
                    await self._endings.end_endpoint(endpoint, limit=ENDED_ROWS, now=self._clock.now())
            if is_behind:
                await self._loader.reload()
                self._looks.wake()
        except LedgerUnavailable:
            self._holdings.rescheduled(*endpoints)  # the next look asks
            raise
        finally:
            self._looks.known(deliveries)

    async def end_returned(self) -> None:
        """End what came back to the ledger as its endpoint was deleted: nobody else would before it is due."""
        if self._everywhere:
            await self._walk()
        await self.end_noted()

    async def end_noted(self) -> None:
        """End what is known to be left, and walk over nothing else: for nodes that send nothing."""
        asked = self._holdings.take_rescheduled()
        if not asked:
            return
        try:
            await self._loader.reload()
            for endpoint in [one for one in asked if one not in self._directory.routes]:
                if await self._ledger.endpoint(endpoint) is None:
                    while await self._endings.end_endpoint(endpoint, limit=ENDED_ROWS, now=self._clock.now()):
                        await self._clock.sleep(0)
        except LedgerUnavailable:
            self._holdings.put_rescheduled_back(asked)  # the next look asks again
            raise

    async def _walk(self) -> None:
        """Find the endpoints that memory does not know. What comes to the ledger meanwhile, somebody living has brought."""
        self._everywhere = False
        after: bytes | None = b""
        try:
            while after is not None:
                endpoints, after = await self._ledger.unheld_endpoints(after)
                self._holdings.rescheduled(*(one for one in endpoints if one not in self._directory.routes))
                await self._clock.sleep(REST_S)
        except Exception:
            self._everywhere = True
            raise

    async def end_parked(self, groups: Sequence[ParkedGroup]) -> None:
        """End what was parked in the moment its endpoint was deleted: nobody else would."""
        unknown = [group for group in groups if group.endpoint not in self._directory.routes]
        deleted = {
            endpoint
            for endpoint in sorted({group.endpoint for group in unknown})
            if await self._ledger.endpoint(endpoint) is None
        }
        gone = [
            AgedGroup(each.endpoint, each.reason, WHENEVER) for each in unknown if each.endpoint in deleted
        ]
        await walk(self._ledger, self._clock, gone, self._cancel)

    async def _cancel(self, rows: Sequence[Delivery]) -> list[bytes]:
        return await self._endings.end(rows, state="cancelled", reason="deleted", now=self._clock.now())
