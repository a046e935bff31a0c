"""Rows whose endpoint is gone: nobody will ever send them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from surehook.core.model import Delivery
from surehook.delivery.leave import RELEASE_ROWS
from surehook.ports.ledger import Ledger


async def end_orphans(
    ledger: Ledger, deliveries: Sequence[Delivery], *, node: bytes, now: Callable[[], int]
) -> None:
    """Hand claimed rows back and let the book end what it has of their endpoints."""
    await ledger.release(deliveries, node=node, now=now())
    for endpoint in sorted({delivery.endpoint for delivery in deliveries}):
        await ledger.end_endpoint(endpoint, reason="deleted", limit=RELEASE_ROWS, now=now())
