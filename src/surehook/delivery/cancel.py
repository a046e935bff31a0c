"""Cancel a delivery that nobody is sending."""

from __future__ import annotations

from surehook.core.errors import Problem
from surehook.delivery.managing import Manager
from surehook.delivery.resend import find
from surehook.ports.reading import DeliveryView

LOOKS = 3  # a delivery that goes on to its next attempt between look and end is looked at again


async def cancel(manager: Manager, delivery: bytes) -> DeliveryView:
    """End it as `cancelled`, reason `request`. Raises Problem `delivery_sending` or `delivery_finished`."""
    for _ in range(LOOKS):
        seen = await find(manager, delivery)
        if seen.finished_at is not None:
            raise Problem("delivery_finished", f"it has ended already: {seen.state}", status=409)
        opened = await manager.ledger.open_delivery(delivery)
        if opened is None or opened[1] is not None:
            continue  # between the looks it ended, or it was taken up
        now = manager.clock.now()
        if await manager.endings.end([opened[0]], state="cancelled", reason="request", now=now):
            return await find(manager, delivery)
    raise Problem(
        "delivery_sending",
        "a process holds it: its request is under way, or it waits for its turn in memory",
        hint="what was sent, its result decides; pause the endpoint, and what waits is parked and can be cancelled",
        status=409,
    )
