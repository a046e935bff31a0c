"""Rows whose endpoint memory does not know: it was deleted, or memory is behind the ledger.

Another process may have made the endpoint a moment ago and accepted events for it. So the ledger is asked before
anything is ended: what is cancelled on a stale word would be lost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from surehook.core.model import Delivery
from surehook.delivery.endings import Endings
from surehook.delivery.managing import Book
from surehook.delivery.parked_walk import walk
from surehook.delivery.routes import Directory
from surehook.ports.clock import Clock
from surehook.ports.ledger import AgedGroup, ParkedGroup

ENDED_ROWS = 1_000  # unheld rows of one endpoint ended at a time
WHENEVER = 1 << 47  # later than every birth, in milliseconds


class Orphans:
    """Ends them, as cancelled with their endpoint. `directory` is what memory knows."""

    def __init__(self, *, ledger: Book, clock: Clock, directory: Directory, endings: Endings) -> None:
        self._ledger = ledger
        self._clock = clock
        self._directory = directory
        self._endings = endings

    async def end_claimed(
        self,
        deliveries: Sequence[Delivery],
        *,
        node: bytes,
        behind: Callable[[], Awaitable[None]],
        known: Callable[[Sequence[Delivery]], None],
    ) -> None:
        """Hand claimed rows back, and let the ledger end what it has of endpoints that are gone. `behind` is called
        where memory has to catch up, `known` when nothing is left to do: before that, they would be claimed in vain."""
        try:
            await self._ledger.release(deliveries, node=node, now=self._clock.now())
            is_behind = False
            for endpoint in sorted({delivery.endpoint for delivery in deliveries}):
                if await self._ledger.endpoint(endpoint) is not None:
                    is_behind = True
                else:
                    await self._endings.end_endpoint(endpoint, limit=ENDED_ROWS, now=self._clock.now())
            if is_behind:
                await behind()
        finally:
            known(deliveries)

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
