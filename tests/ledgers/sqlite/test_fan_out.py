"""An event for many endpoints holds the one writer no longer than it must."""

from __future__ import annotations

from surehook.core.model import Delivery
from surehook.ledgers.sqlite.fan_out import MANY
from tests.ledgers.desk import Desk
from tests.ledgers.sqlite.watching import WatchedDriver

ENDPOINTS = 1_000


async def test_a_thousand_deliveries_are_not_bound_one_by_one(desk: Desk, driver: WatchedDriver) -> None:
    item = desk.make.incoming(*(desk.make.id() for _ in range(ENDPOINTS)), held=True)
    item.deliveries[500].parked = "share"
    before, ran = driver.bound, len(driver.ran)
    await desk.accept(item)
    assert driver.bound - before < 100
    assert len(driver.ran) - ran < 10
    assert len(await desk.ledger.held(desk.node, limit=2 * ENDPOINTS)) == ENDPOINTS - 1


async def test_what_cannot_be_stored_of_it_takes_no_other_event_along(desk: Desk) -> None:
    item = desk.make.incoming(*(desk.make.id() for _ in range(MANY)))
    item.deliveries.append(item.deliveries[0])
    items = [desk.make.incoming(desk.endpoint), item, desk.make.incoming(desk.endpoint)]
    taken = await desk.accept(*items)
    assert [(one.fresh, one.problem) for one in taken] == [(True, None), (False, "unstorable"), (True, None)]
    claimed: list[Delivery] = await desk.claim()
    assert [delivery.event for delivery in claimed] == [items[0].event.id, items[2].event.id]
