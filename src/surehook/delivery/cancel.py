"""Cancel a delivery that nobody is sending."""

from __future__ import annotations

from surehook.core.errors import Problem
from surehook.delivery.managing import Manager
from surehook.delivery.resend import find
from surehook.ports.reading import DeliveryView


async def cancel(manager: Manager, delivery: bytes) -> DeliveryView:
    """End it as `cancelled`, reason `request`. Raises Problem `delivery_sending` or `delivery_finished`."""
    seen = await find(manager, delivery)
    if seen.finished_at is None:
        opened = await manager.ledger.open_delivery(delivery)
        if opened is not None:  # the ledger itself skips what is held
            await manager.ledger.end(
                [opened[0]], state="cancelled", reason="request", notices=[], now=manager.clock.now()
            )
            after = await find(manager, delivery)
            if after.state == "cancelled" and after.reason == "request":
                return after
        seen = await find(manager, delivery)  # between the looks it was taken up, or it ended
    if seen.finished_at is not None:
        raise Problem("delivery_finished", f"it has ended already: {seen.state}", status=409)
    raise Problem(
        "delivery_sending",
        "a request is under way",
        hint="its result decides; pause the endpoint to hold what follows",
        status=409,
    )
