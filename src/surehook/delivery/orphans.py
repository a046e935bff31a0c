"""Rows whose endpoint memory does not know: it was deleted, or memory is behind the book.

Another process may have made the endpoint a moment ago and accepted events for it. So the book is asked before
anything is ended: what is cancelled on a stale word would be lost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from surehook.core.model import Delivery
from surehook.delivery.managing import Book

ENDED_ROWS = 1_000  # unheld rows of one endpoint ended at a time


async def end_orphans(
    ledger: Book,
    deliveries: Sequence[Delivery],
    *,
    node: bytes,
    now: Callable[[], int],
    behind: Callable[[], Awaitable[None]],
) -> None:
    """Hand claimed rows back, and let the book end what it has of endpoints that are gone. `behind` is called where
    memory has to catch up."""
    await ledger.release(deliveries, node=node, now=now())
    known = [
        await end_unknown(ledger, endpoint, limit=ENDED_ROWS, now=now())
        for endpoint in sorted({delivery.endpoint for delivery in deliveries})
    ]
    if any(known):
        await behind()


async def end_unknown(ledger: Book, endpoint: bytes, *, limit: int, now: int) -> bool:
    """End up to `limit` unheld deliveries of an endpoint that the book does not have; True where it has it."""
    if await ledger.endpoint(endpoint) is not None:
        return True
    await ledger.end_endpoint(endpoint, reason="deleted", limit=limit, now=now)
    return False
