"""The node's fence: every transaction of a node begins by reading that it is not buried."""

from __future__ import annotations

from typing import NamedTuple

from surehook.core.errors import NodeBuried
from surehook.ledgers.sqlite.session import Session
from surehook.ledgers.sqlite.statements import query


class Fenced(NamedTuple):
    """What one look at the start of a transaction tells."""

    version: int  # of the configuration
    number: int  # by which the node holds rows
    lag_ms: int  # see schema.configuration


def fence(session: Session, node: bytes) -> Fenced:
    """Raise NodeBuried unless the node has entered and is not buried."""
    version, number, lag_ms = session.rows(query("fence"), (node,))[0]
    if number is None:
        raise NodeBuried(node)
    return Fenced(version, number, lag_ms)
