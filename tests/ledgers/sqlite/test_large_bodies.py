"""Bodies of a quarter of a megabyte on their way out: each is read once for a call, and not as text."""

from __future__ import annotations

import os

import pytest

from surehook.core.model import Delivery
from tests.ledgers.desk import ALL, Desk
from tests.ledgers.making import NOW
from tests.ledgers.sqlite.watching import WatchedDriver

READ_BODY = "select body from event where id = ?"
SMALL, LARGE = 32 << 10, (32 << 10) + 1


async def taken(desk: Desk, way: str, *bodies: bytes) -> list[Delivery]:
    """Two deliveries of an event with each of these bodies, as a claim gives them or the end of a pause."""
    parked = "paused" if way == "unpark" else None
    for body in bodies:
        await desk.publish(desk.endpoint, desk.endpoint, parked=parked, event={"body": body})
    if way == "claim":
        return await desk.claim()
    return await desk.ledger.unpark(desk.endpoint, ("paused",), node=desk.node, limit=ALL, now=NOW)  # type: ignore[no-any-return]


@pytest.mark.parametrize("way", ["claim", "unpark"])
async def test_each_large_body_is_read_once(desk: Desk, driver: WatchedDriver, way: str) -> None:
    bodies = [os.urandom(SMALL), os.urandom(LARGE), os.urandom(LARGE)]
    driver.ran.clear()
    rows = await taken(desk, way, *bodies)
    assert [row.body for row in rows] == [body for body in bodies for _ in range(2)]
    assert driver.ran.count(READ_BODY) == 2
    assert rows[2].body is rows[3].body


async def test_small_bodies_come_with_their_rows(desk: Desk, driver: WatchedDriver) -> None:
    """A statement each would cost the writer the interpreter each time."""
    driver.ran.clear()
    assert len(await taken(desk, "claim", b"x" * SMALL)) == 2
    assert READ_BODY not in driver.ran


async def test_a_large_body_that_has_gone_is_empty(desk: Desk) -> None:
    (row, _) = await taken(desk, "claim", b"x" * LARGE)
    await desk.ledger.release([row], node=desk.node, now=NOW)
    await desk.ledger._write(lambda session: session.run("update event set body = null"))
    assert [again.body for again in await desk.claim()] == [b""]
