"""Endings without a call in hand: by age, by request, of pending retries, with the endpoint.

Each goes through here, so that what is counted and told is what was committed: an ending that the ledger refused, since
the row went on meanwhile, is no ending. (Those with a call in hand are counted by the recorder, after its commit.)
"""

from __future__ import annotations

from collections.abc import Sequence

from surehook.core.model import Delivery, Notice
from surehook.delivery.directory import Directory
from surehook.delivery.notices import Notices
from surehook.delivery.request import kept_later
from surehook.delivery.watch import DeliveryCounts
from surehook.ports.ledger import NONE_KEPT, Ledger


class Endings:
    """Ends deliveries in the ledger, counts them, and tells of what the ledger has kept."""

    def __init__(
        self, *, ledger: Ledger, directory: Directory, watch: DeliveryCounts, notices: Notices
    ) -> None:
        self._ledger = ledger
        self._directory = directory
        self._watch = watch
        self._notices = notices

    async def end(
        self,
        deliveries: Sequence[Delivery],
        *,
        state: str,
        reason: str | None,
        now: int,
        notices: Sequence[Notice] = (),
    ) -> list[bytes]:
        """Finish unheld deliveries that are as they were read; returns the ids of those."""
        ended = await self._ledger.end(
            deliveries, state=state, reason=reason, notices=notices, now=now,
            request_headers=self._kept(deliveries, now) if state == "dead" else NONE_KEPT,
        )  # fmt: skip
        done = set(ended)
        self._watch.finished(state, len(done))
        for notice in notices:
            if notice.delivery in done:
                self._notices.tell(notice)
        return ended

    def _kept(self, deliveries: Sequence[Delivery], now: int) -> dict[bytes, bytes]:
        """Return the parts of their last requests that dead letters keep."""
        kept: dict[bytes, bytes] = {}
        for delivery in deliveries:
            route = self._directory.routes.get(delivery.endpoint)
            if route is None:
                continue
            headers = kept_later(route, self._directory.plan(route, delivery.type), delivery, now=now)
            if headers is not None:
                kept[delivery.id] = headers
        return kept

    async def end_endpoint(self, endpoint: bytes, *, limit: int, now: int) -> int:
        """Cancel up to `limit` unheld deliveries of a deleted endpoint; returns how many (0: none is left)."""
        ended = await self._ledger.end_endpoint(endpoint, reason="deleted", limit=limit, now=now)
        self._watch.finished("cancelled", ended)
        return ended
