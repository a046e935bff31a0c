"""Connections by purpose: what people change waits by itself, and a server that says nothing keeps no process from its end."""

from __future__ import annotations

import asyncio
from typing import Any

from lab.sim.loop import run
from surehook.core.model import FIRST
from surehook.ledgers.postgres.ledger import PostgresLedger
from surehook.ledgers.postgres.pool import Pool
from surehook.ledgers.postgres.session import CLOSE_S, Connect
from tests.ledgers.desk import Desk
from tests.ledgers.making import NOW

PATIENCE_S = 4.0  # a lock is waited for longer


async def test_changes_that_wait_for_a_row_delay_no_claim(
    desk: Desk, book: PostgresLedger, beside: Any
) -> None:
    await desk.publish(held=False)
    async with beside.transaction():
        await beside.execute("select 1 from endpoint where id = $1 for update", desk.endpoint)
        changes = [
            asyncio.ensure_future(book.change_endpoint(desk.endpoint, {"status": "paused"}, now=NOW))
            for _ in range(4)
        ]
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.sleep(0)  # they have their connections
            claimed = await book.claim(FIRST, node=desk.node, limit=10, due_by=NOW, now=NOW)
        assert len(claimed) == 1
    await asyncio.gather(*changes)


class Frozen:
    """A connection to a server that answers nothing any more."""

    def __init__(self) -> None:
        self.is_dropped = False

    def is_closed(self) -> bool:
        return self.is_dropped

    async def close(self) -> None:
        await asyncio.Event().wait()

    def terminate(self) -> None:
        self.is_dropped = True


def test_connections_to_a_frozen_server_are_dropped_at_once_and_together() -> None:
    made: list[Frozen] = []

    async def connect() -> Frozen:
        made.append(Frozen())
        return made[-1]

    async def story() -> float:
        connecting: Connect = connect  # type: ignore[assignment]
        pool = Pool(connecting, size=8, patience_s=120.0)
        async with asyncio.TaskGroup() as group:
            for session in pool._sessions:
                group.create_task(session.connected())
        began = asyncio.get_running_loop().time()
        await pool.close()
        return asyncio.get_running_loop().time() - began

    assert run(story()) <= CLOSE_S
    assert [connection.is_dropped for connection in made] == [True] * 8
