"""The life of a node: entering, heartbeats and eviction, and the rows it holds.

An eviction is two statements on purpose. The first waits for every transaction that has share-locked the node's row, and
keeps out later ones; only the second, with a snapshot of its own, sees what those transactions wrote. The first also
deletes the node's heartbeat, unless that was raised since the node was judged: a node that beats at the same moment either
lives on or learns that it was evicted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from surehook.core.errors import NodeEvicted
from surehook.core.model import LANES, Delivery, NodeRow
from surehook.ledgers.common.statements import Row
from surehook.ledgers.postgres.rows import sharing_bodies
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query
from surehook.ledgers.postgres.stray_notes import note_ready
from surehook.ports.ledger import Eviction

HIGHEST = b"\xff" * 16
BOTH_LANES = list(range(len(LANES)))


def check_fence(found: Sequence[object], node: bytes) -> None:
    """Raise NodeEvicted if a fenced statement has found no node."""
    if not found:
        raise NodeEvicted(node)


def leased_of(found: Sequence[Row], node: bytes) -> list[Delivery]:
    """Return the deliveries of a fenced statement, which returns one row without an id if there are none."""
    check_fence(found, node)
    return [] if found[0][0] is None else sharing_bodies(found)


async def enter(session: PostgresSession, node: NodeRow, *, now: int) -> None:
    await session.change(query("enter"), node.id, node.host, node.boot_id, node.pid, node.started_at, now)


async def beat(session: PostgresSession, node: bytes, counter: int, *, now: int) -> dict[bytes, int]:
    found = await session.change(query("beat"), node, counter, now)
    check_fence(found, node)
    counters = {row[0]: row[1] for row in found}
    # The statement reads as of its beginning.
    counters[node] = counter
    return counters


async def nodes(session: PostgresSession) -> list[NodeRow]:
    return [NodeRow(*row) for row in await session.rows(query("nodes"))]


async def evict(
    session: PostgresSession, nodes: Sequence[bytes], *, now: int, judged: Mapping[bytes, int]
) -> tuple[Eviction, int | None]:
    """Evict nodes. Also return the earliest instant at which a freed row is due."""
    async with session.writing():
        evicted = await session.rows(
            query("evict"), sorted(set(nodes)), now, list(judged), list(judged.values())
        )
        if not evicted:
            return Eviction([], 0), None
        found = await session.row(query("free_nodes"), [row[0] for row in evicted], now)
        assert found is not None
        count, due_at, freed = found
        await note_ready(session, freed or (), now)
        return Eviction(sorted(row[1] for row in evicted), count), due_at


async def free(session: PostgresSession, ids: Sequence[bytes], *, node: bytes, now: int) -> int | None:
    """Free these rows as an eviction would. Return the earliest instant at which one is due."""
    async with session.writing():
        found = await session.rows(query("free"), node, sorted(set(ids)), now)
        check_fence(found, node)
        due_at: int | None = found[0][0]
        await note_ready(session, found[0][1], now)
    return due_at


class HeldFrom:
    """The lowest id of the rows that a node holds.

    The index keeps the entries of rows that were held until vacuum removes them. A look that began at the lowest entry would
    walk over everything the node has sent for as long as somebody holds a snapshot. All leases of a node pass through its
    own ledger, which therefore knows the lowest id; if an answer was lost, it starts from the beginning.
    """

    def __init__(self) -> None:
        self._lowest: dict[bytes, bytes] = {}

    def entered(self, node: bytes) -> None:
        self._lowest[node] = HIGHEST

    def leased(self, node: bytes, lowest: bytes) -> None:
        """Note that rows from this id on may be held."""
        if node in self._lowest:
            self._lowest[node] = min(self._lowest[node], lowest)

    def lost(self) -> None:
        """Forget the ids: nobody knows what was leased."""
        self._lowest.clear()

    async def count(self, session: PostgresSession, node: bytes) -> int:
        count: int = await session.value(query("held_count"), node, BOTH_LANES, self._lowest.get(node, b""))
        return count

    async def look(self, session: PostgresSession, node: bytes, *, limit: int) -> list[bytes]:
        before = self._lowest.get(node, b"")
        # What is leased during the look lowers it.
        self._lowest[node] = HIGHEST
        try:
            found = [row[0] for row in await session.rows(query("held"), node, limit, BOTH_LANES, before)]
        except BaseException:
            self.leased(node, before)
            raise
        self.leased(node, before if len(found) == limit else found[0] if found else HIGHEST)
        return found


async def time(session: PostgresSession) -> int:
    """Read the server's clock."""
    millis: int = await session.value(query("time"))
    return millis
