"""Rows whose endpoint memory does not know: it was deleted, or memory is behind the ledger.

Another process may have made the endpoint a moment ago and accepted events for it. So the ledger is asked before
anything is ended: what is cancelled on a stale word would be lost.

Who deletes an endpoint ends what nobody holds of it. A row that was held then comes back to the book behind that walk: its
result was on its way, or its node had not heard. By its due time a claim finds it, which may be days later. So those
who gave rows back look once more whether the endpoints are there, and ask only then: whatever was deleted before
this is known by now, and who deletes one after it walks over rows that are in the book.

What a process knew of that dies with it, and who frees rows does not know their endpoints. So one that starts, buries another or
frees rows after a lost answer looks once at the endpoints of all rows that nobody holds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from surehook.core.errors import LedgerUnavailable
from surehook.core.model import Delivery
from surehook.delivery.endings import Endings
from surehook.delivery.managing import Book
from surehook.delivery.parked_walk import walk
from surehook.delivery.routes import Directory
from surehook.ports.clock import Clock
from surehook.ports.ledger import AgedGroup, ParkedGroup

ENDED_ROWS = 1_000  # unheld rows of one endpoint ended at a time
REST_S = 0.02  # between two steps of a walk over everything: accepts go first
WHENEVER = 1 << 47  # later than every birth, in milliseconds


class Orphans:
    """Ends them, as cancelled with their endpoint. `directory` is what memory knows."""

    def __init__(self, *, ledger: Book, clock: Clock, directory: Directory, endings: Endings) -> None:
        self._ledger = ledger
        self._clock = clock
        self._directory = directory
        self._endings = endings
        # Endpoints of which rows went on to a time to come, since the last look; as an ordered set.
        self._went_on: dict[bytes, None] = {}
        self._everywhere = True

    def look_everywhere(self) -> None:
        """Rows may be in the book of which nobody here knows the endpoint."""
        self._everywhere = True

    def went_on(self, *endpoints: bytes) -> None:
        """The book has rows of these that nobody holds, to be sent later."""
        self._went_on.update(dict.fromkeys(endpoints))

    async def hand_back(self, deliveries: Sequence[Delivery], *, node: bytes) -> None:
        """Give held rows back to the book until their time is near."""
        await self._ledger.release(deliveries, node=node, now=self._clock.now())
        self.went_on(*{delivery.endpoint for delivery in deliveries})

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
                await behind()
        except LedgerUnavailable:
            self.went_on(*endpoints)  # the next look asks
            raise
        finally:
            known(deliveries)

    async def end_returned(self, current: Callable[[], Awaitable[None]]) -> None:
        """End what came back to the book as its endpoint was deleted: nobody else would before it is due. `current` makes
        sure that memory is the book's word."""
        if self._everywhere:
            await self._walk()
        asked, self._went_on = self._went_on, {}
        if not asked:
            return
        try:
            await current()
            for endpoint in [one for one in asked if one not in self._directory.routes]:
                if await self._ledger.endpoint(endpoint) is None:
                    while await self._endings.end_endpoint(endpoint, limit=ENDED_ROWS, now=self._clock.now()):
                        await self._clock.sleep(0)
        except LedgerUnavailable:
            self._went_on = asked | self._went_on  # the next look asks again
            raise

    async def _walk(self) -> None:
        """Find the endpoints that memory does not know. What comes to the book meanwhile, somebody living has brought."""
        self._everywhere = False
        after: bytes | None = b""
        try:
            while after is not None:
                endpoints, after = await self._ledger.unheld_endpoints(after)
                self.went_on(*(one for one in endpoints if one not in self._directory.routes))
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
