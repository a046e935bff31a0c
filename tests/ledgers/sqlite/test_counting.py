"""Counting what waits takes the longer the more there is, and keeps nobody else waiting."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from surehook.ledgers.sqlite.counts import SqliteCounts
from surehook.ports.reading import DeliveryFilter
from tests.ledgers.desk import Desk
from tests.ledgers.making import NOW


class Long(SqliteCounts):
    """A count that ends when it may."""

    def __init__(self) -> None:
        super().__init__(keeps=False)
        self.may_end = threading.Event()

    def lanes(self, session: Any, *, now: int) -> Any:
        self.may_end.wait()
        return super().lanes(session, now=now)


async def test_a_list_does_not_wait_for_a_count(desk: Desk) -> None:
    ledger: Any = desk.ledger
    await desk.publish_one()
    ledger._counts = long = Long()
    counting = asyncio.ensure_future(ledger.lane_counts(now=NOW))
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(20):
            listed = await ledger.deliveries(DeliveryFilter(), limit=10, after=None)
    finally:
        long.may_end.set()
    assert len(listed.data) == 1
    assert sum(lane.rows for lane in await counting) == 1
