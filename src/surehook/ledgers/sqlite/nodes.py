"""The life of a node: entering, heartbeats and eviction, and the rows it holds.

Every transaction of a node begins by checking that the node is not evicted (`fence`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from surehook.core.errors import NodeEvicted
from surehook.core.model import NodeRow
from surehook.ledgers.sqlite.rows import packed_ids, run_batch
from surehook.ledgers.sqlite.session import SqliteSession
from surehook.ledgers.sqlite.statements import query
from surehook.ports.ledger import Eviction


class Fenced(NamedTuple):
    """The values that the check reads.

    version  of the configuration
    number   under which the node holds rows
    lag_ms   see schema.configuration
    """

    version: int
    number: int
    lag_ms: int


def fence(session: SqliteSession, node: bytes) -> Fenced:
    """Raise NodeEvicted unless the node has entered and is not evicted."""
    version, number, lag_ms = session.rows(query("fence"), (node,))[0]
    if number is None:
        raise NodeEvicted(node)
    return Fenced(version, number, lag_ms)


def enter(session: SqliteSession, node: NodeRow, *, now: int) -> None:
    with session.writing():
        session.run(query("enter_node"), (node.id, node.host, node.boot_id, node.pid, node.started_at))
        session.run(query("beat"), (node.id, 0, now))


def beat(session: SqliteSession, node: bytes, counter: int, *, now: int) -> dict[bytes, int]:
    with session.writing():
        fence(session, node)
        session.run(query("beat"), (node, counter, now))
        return dict(session.rows(query("beats")))


def nodes(session: SqliteSession) -> list[NodeRow]:
    return [NodeRow(*row) for row in session.rows(query("nodes"))]


def evict(
    session: SqliteSession, nodes: Sequence[bytes], *, now: int, judged: Mapping[bytes, int]
) -> Eviction:
    evicted, freed = [], 0
    with session.writing():
        counters: dict[bytes, int] = dict(session.rows(query("beats"))) if judged else {}
        for node in sorted(set(nodes)):
            number = session.rows(query("fence"), (node,))[0][1]
            if number is None or counters.get(node) != judged.get(node, counters.get(node)):
                continue
            evicted.append(node)
            session.run(query("evict_node"), (now, number))
            session.run(query("interrupted"), (now, number))
            freed += session.run(query("free"), (now, number))
    return Eviction(evicted, freed)


def free(session: SqliteSession, ids: Sequence[bytes], *, node: bytes, now: int) -> None:
    with session.writing():
        number = fence(session, node).number
        run_batch(session, "interrupted_among", list(ids), before=(now,), after=(number,))
        run_batch(session, "free_among", list(ids), before=(now,), after=(number,))


def held_count(session: SqliteSession, node: bytes) -> int:
    count: int = session.value(query("held_count"), (node,))
    return count


def held(session: SqliteSession, node: bytes, *, limit: int) -> list[bytes]:
    return packed_ids(session, query("held"), (node, limit))
