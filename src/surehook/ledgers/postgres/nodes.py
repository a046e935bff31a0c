"""The life of a node: entering, beating, burial, and what a node holds.

Burial is two statements on purpose. The first waits for every transaction that has share-locked the node's
row, and closes the door for those that come later; only a second one, with a snapshot of its own, sees what
the ones before it have written.
"""

from __future__ import annotations

from collections.abc import Sequence

from surehook.core.errors import NodeBuried
from surehook.core.model import Node
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query


def check_fence(found: Sequence[object], node: bytes) -> None:
    """Raise NodeBuried where a fenced statement has found no node."""
    if not found:
        raise NodeBuried(f"node {node.hex()} is buried or never entered")


async def enter(session: Session, node: Node, *, now: int) -> None:
    await session.change(query("enter"), node.id, node.host, node.boot_id, node.pid, node.started_at, now)


async def beat(session: Session, node: bytes, counter: int, *, now: int) -> dict[bytes, int]:
    found = await session.change(query("beat"), node, counter, now)
    check_fence(found, node)
    counters = {row[0]: row[1] for row in found}
    counters[node] = counter  # the statement reads as of its beginning
    return counters


async def nodes(session: Session) -> list[Node]:
    return [Node(*row) for row in await session.rows(query("nodes"))]


async def bury(session: Session, nodes: Sequence[bytes], *, now: int) -> tuple[int, int | None]:
    """How many rows were freed, and the earliest instant that one of them is due."""
    async with session.writing():
        numbers = [row[0] for row in await session.rows(query("bury"), sorted(set(nodes)), now)]
        if not numbers:
            return 0, None
        found = await session.row(query("free_nodes"), numbers, now)
        assert found is not None
        return found[0], found[1]


async def free(session: Session, ids: Sequence[bytes], *, node: bytes, now: int) -> int | None:
    """Like a burial of these rows alone; the earliest instant that one of them is due."""
    found = await session.change(query("free"), node, sorted(set(ids)), now)
    check_fence(found, node)
    due_at: int | None = found[0][0]
    return due_at


async def held_count(session: Session, node: bytes) -> int:
    count: int = await session.value(query("held_count"), node)
    return count


async def held(session: Session, node: bytes, *, limit: int) -> list[bytes]:
    return [row[0] for row in await session.rows(query("held"), node, limit)]


async def time(session: Session) -> int:
    """The server's clock."""
    millis: int = await session.value(query("time"))
    return millis
