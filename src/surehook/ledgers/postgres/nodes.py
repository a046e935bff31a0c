"""The life of a node: entering, beating, burial, and what a node holds.

Burial is two statements on purpose. The first waits for every transaction that has share-locked the node's
row, and closes the door for those that come later; only a second one, with a snapshot of its own, sees what
the ones before it have written. The first also takes the node's beat away, and not if that has been raised since
the node was judged: whoever beats at the same moment either is alive or hears that it is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from surehook.core.errors import NodeBuried
from surehook.core.model import LANES, Delivery, Node
from surehook.ledgers.postgres.rows import sharing_bodies
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query
from surehook.ledgers.postgres.telling import tell
from surehook.ports.ledger import Burial

HIGHEST = b"\xff" * 16
BOTH_LANES = list(range(len(LANES)))


def check_fence(found: Sequence[object], node: bytes) -> None:
    """Raise NodeBuried where a fenced statement has found no node."""
    if not found:
        raise NodeBuried(node)


def leased_of(found: Sequence[Any], node: bytes) -> list[Delivery]:
    """Deliveries of a fenced statement, which answers one row without an id where there are none."""
    check_fence(found, node)
    return [] if found[0][0] is None else sharing_bodies(found)


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


async def bury(
    session: Session, nodes: Sequence[bytes], *, now: int, judged: Mapping[bytes, int]
) -> tuple[Burial, int | None]:
    """Who was buried, and the earliest instant that a freed row is due."""
    async with session.writing():
        buried = await session.rows(
            query("bury"), sorted(set(nodes)), now, list(judged), list(judged.values())
        )
        if not buried:
            return Burial([], 0), None
        found = await session.row(query("free_nodes"), [row[0] for row in buried], now)
        assert found is not None
        count, due_at, freed = found
        await tell(session, freed or (), now)
        return Burial(sorted(row[1] for row in buried), count), due_at


async def free(session: Session, ids: Sequence[bytes], *, node: bytes, now: int) -> int | None:
    """Like a burial of these rows alone; the earliest instant that one of them is due."""
    async with session.writing():
        found = await session.rows(query("free"), node, sorted(set(ids)), now)
        check_fence(found, node)
        due_at: int | None = found[0][0]
        await tell(session, found[0][1], now)
    return due_at


class HeldFrom:
    """From which id on a node's held rows lie.

    The index keeps the entries of rows that were held until vacuum may remove them, so a look that began at the
    beginning would walk over everything the node has ever sent while somebody holds a snapshot. All leases of a
    node pass through its own ledger, which therefore knows the lowest; where an answer was lost, it begins anew.
    """

    def __init__(self) -> None:
        self._lowest: dict[bytes, bytes] = {}

    def entered(self, node: bytes) -> None:
        self._lowest[node] = HIGHEST

    def leased(self, node: bytes, lowest: bytes) -> None:
        """Rows with this id, and higher ones, may be held from now on."""
        if node in self._lowest:
            self._lowest[node] = min(self._lowest[node], lowest)

    def lost(self) -> None:
        """Nobody knows what was leased."""
        self._lowest.clear()

    async def count(self, session: Session, node: bytes) -> int:
        count: int = await session.value(query("held_count"), node, BOTH_LANES, self._lowest.get(node, b""))
        return count

    async def look(self, session: Session, node: bytes, *, limit: int) -> list[bytes]:
        before = self._lowest.get(node, b"")
        self._lowest[node] = HIGHEST  # what is leased during the look lowers it
        try:
            found = [row[0] for row in await session.rows(query("held"), node, limit, BOTH_LANES, before)]
        except BaseException:
            self.leased(node, before)
            raise
        self.leased(node, before if len(found) == limit else found[0] if found else HIGHEST)
        return found


async def time(session: Session) -> int:
    """The server's clock."""
    millis: int = await session.value(query("time"))
    return millis
