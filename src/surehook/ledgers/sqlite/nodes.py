"""The life of a node: entering, heartbeats and eviction, and the rows it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from surehook.core.model import Node
from surehook.ledgers.sqlite.fence import fence
from surehook.ledgers.sqlite.rows import packed_ids, run_batch
from surehook.ledgers.sqlite.session import Session
from surehook.ledgers.sqlite.statements import query
from surehook.ports.ledger import Burial


def enter(session: Session, node: Node, *, now: int) -> None:
    with session.writing():
        session.run(query("enter_node"), (node.id, node.host, node.boot_id, node.pid, node.started_at))
        session.run(query("beat"), (node.id, 0, now))


def beat(session: Session, node: bytes, counter: int, *, now: int) -> dict[bytes, int]:
    with session.writing():
        fence(session, node)
        session.run(query("beat"), (node, counter, now))
        return dict(session.rows(query("beats")))


def nodes(session: Session) -> list[Node]:
    return [Node(*row) for row in session.rows(query("nodes"))]


def bury(session: Session, nodes: Sequence[bytes], *, now: int, judged: Mapping[bytes, int]) -> Burial:
    buried, freed = [], 0
    with session.writing():
        counters = dict(session.rows(query("beats"))) if judged else {}
        for node in sorted(set(nodes)):
            number = session.rows(query("fence"), (node,))[0][1]
            if number is None or counters.get(node) != judged.get(node, counters.get(node)):
                continue
            buried.append(node)
            session.run(query("bury_node"), (now, number))
            session.run(query("interrupted"), (now, number))
            freed += session.run(query("free"), (now, number))
    return Burial(buried, freed)


def free(session: Session, ids: Sequence[bytes], *, node: bytes, now: int) -> None:
    with session.writing():
        number = fence(session, node).number
        run_batch(session, "interrupted_among", list(ids), before=(now,), after=(number,))
        run_batch(session, "free_among", list(ids), before=(now,), after=(number,))


def held_count(session: Session, node: bytes) -> int:
    count: int = session.value(query("held_count"), (node,))
    return count


def held(session: Session, node: bytes, *, limit: int) -> list[bytes]:
    return packed_ids(session, query("held"), (node, limit))
