"""Endings without a call in hand: by age, by request, of pending retries, with the endpoint.

Each goes through here, so that what is counted and told is what was committed: an ending that the ledger refused, since
the row went on meanwhile, is no ending. (Those with a call in hand are counted by the recorder, after its commit.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from surehook.core.model import Delivery, Notice
from surehook.delivery.watch import Watch
from surehook.ports.ledger import Ledger


class Endings:
    """Ends deliveries in the ledger, and counts them. `notify` is told of every notice that was kept."""

    def __init__(self, *, ledger: Ledger, watch: Watch, notify: Callable[[Notice], None]) -> None:
        self._ledger = ledger
        self._watch = watch
        self._notify = notify

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
        ended = await self._ledger.end(deliveries, state=state, reason=reason, notices=notices, now=now)
        done = set(ended)
        self._watch.finished(state, len(done))
        for notice in notices:
            if notice.delivery in done:
                self._notify(notice)
        return ended

    async def end_endpoint(self, endpoint: bytes, *, limit: int, now: int) -> int:
        """Cancel up to `limit` unheld deliveries of a deleted endpoint; returns how many (0: none is left)."""
        ended = await self._ledger.end_endpoint(endpoint, reason="deleted", limit=limit, now=now)
        self._watch.finished("cancelled", ended)
        return ended
