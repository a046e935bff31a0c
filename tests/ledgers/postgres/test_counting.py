"""Counting what waits takes the longer the more there is, and keeps nobody else waiting."""

from __future__ import annotations

import asyncio
from typing import Any

from surehook.ledgers.postgres.counts import PostgresCounts
from surehook.ports.reading import DeliveryFilter
from tests.ledgers.desk import Desk
from tests.ledgers.making import NOW


class Long(PostgresCounts):
    """A count that ends when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_end = asyncio.Event()

    async def lanes(self, session: Any, *, now: int) -> Any:
        await self.may_end.wait()
        return await super().lanes(session, now=now)


async def test_a_list_does_not_wait_for_counts(desk: Desk) -> None:
    ledger: Any = desk.ledger
    await desk.publish_one()
    ledger._counts = long = Long()
    counting = [asyncio.ensure_future(ledger.lane_counts(now=NOW)) for _ in range(5)]
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(10):
            listed = await ledger.deliveries(DeliveryFilter(), limit=10, after=None)
    finally:
        long.may_end.set()
    assert len(listed.data) == 1
    assert sum(lane.rows for lane in (await asyncio.gather(*counting))[0]) == 1
