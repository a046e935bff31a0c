"""Claims past those who have enough: the rows of everybody else, however many of theirs lie in front.

A call looks at a bounded number of rows (`LOOK_ROWS`), since the one writer does nothing else meanwhile. `Passes` says
where it looks.
"""

from __future__ import annotations

from msgspec import json

from surehook.core.model import Delivery, Lane
from surehook.ledgers.passes import Key, Part, Passes
from surehook.ledgers.sqlite.claim import decode, lease, up_to
from surehook.ledgers.sqlite.fence import fence
from surehook.ledgers.sqlite.session import Session
from surehook.ledgers.sqlite.statements import query
from surehook.ports.ledger import Skip

LOOK_ROWS = 4_000  # some milliseconds of walking


class Others:
    """Where these claims stand."""

    def __init__(self) -> None:
        self._passes = Passes()

    def claim(
        self,
        session: Session,
        lane: Lane,
        *,
        node: bytes,
        limit: int,
        due_by: int,
        now: int,
        size: int,
        skip: Skip,
    ) -> list[Delivery]:
        with session.writing():
            number = fence(session, node).number
            chosen: list[Key] = []
            for part in self._passes.parts(lane, due_by=due_by, now=now):
                chosen = _look(session, lane, part, limit=limit, skip=skip)
                if chosen:
                    break  # what was found is not kept waiting for another look
            return lease(session, up_to(session, [id for _, id in chosen], size), number)


def _look(session: Session, lane: Lane, part: Part, *, limit: int, skip: Skip) -> list[Key]:
    """Up to `limit` rows of a part."""
    endpoints = json.encode([endpoint.hex().upper() for endpoint in skip.endpoints]).decode()
    tenants = json.encode(skip.tenants).decode()
    asked = (lane, *part.begin, part.end, LOOK_ROWS, endpoints, tenants, limit)
    walked, last, found = decode(session.value(query("others"), asked))
    rows = [_key(row) for row in found]
    if len(rows) == limit:
        part.reached(rows[-1])
    else:
        part.reached(_key(last) if walked == LOOK_ROWS else None)
    return rows


def _key(row: tuple[int, str]) -> Key:
    return row[0], bytes.fromhex(row[1])
