"""Dead letters: kept whole until they are replayed, or put away with a note."""

from __future__ import annotations

from surehook.core.errors import Problem
from surehook.delivery.managing import Manager
from surehook.delivery.resend import find
from surehook.ports.reading import DeliveryView


async def dismiss(manager: Manager, delivery: bytes, *, note: str) -> DeliveryView:
    """Put a dead letter away. Raises Problem `not_a_dead_letter` for one that is none (any more)."""
    seen = await find(manager, delivery)
    if not await manager.ledger.dismiss(delivery, note=note, now=manager.clock.now()):
        detail = f"its state is {seen.state}"
        if seen.state == "dead":
            detail = "it was replayed" if seen.replayed_by is not None else "it was dismissed before"
        raise Problem("not_a_dead_letter", detail, status=409)
    return await find(manager, delivery)
