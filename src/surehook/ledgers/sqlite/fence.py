"""The fence: every transaction of a node begins by checking that the node is not evicted."""

from __future__ import annotations

from typing import NamedTuple

from surehook.core.errors import NodeBuried
from surehook.ledgers.sqlite.session import Session
from surehook.ledgers.sqlite.statements import query


class Fenced(NamedTuple):
    """The values that the check reads.

    version  of the configuration
    number   under which the node holds rows
    lag_ms   see schema.configuration
    """

    version: int
    number: int
    lag_ms: int


def fence(session: Session, node: bytes) -> Fenced:
    """Raise NodeBuried unless the node has entered and is not evicted."""
    version, number, lag_ms = session.rows(query("fence"), (node,))[0]
    if number is None:
        raise NodeBuried(node)
    return Fenced(version, number, lag_ms)
