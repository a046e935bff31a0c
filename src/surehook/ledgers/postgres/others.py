"""Claims past those who have enough: the rows of everybody else, however many of theirs lie in front.

The statement looks at a bounded number of index entries (`LOOK_ROWS`), so a call takes milliseconds beside a backlog
of millions. `Passes` says where it looks.
"""

from __future__ import annotations

from surehook.core.model import Delivery, Lane
from surehook.ledgers.passes import Key, Passes
from surehook.ledgers.postgres.claim import leased_of
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query
from surehook.ports.ledger import Skip, is_full

LOOK_ROWS = 5_000  # a few milliseconds of walking


class Others:
    """Where these claims of this node stand."""

    def __init__(self) -> None:
        self._passes = Passes()

    async def claim(
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
        leased: list[Delivery] = []
        endpoints, tenants = list(skip.endpoints), list(skip.tenants)
        for part in self._passes.parts(lane, due_by=due_by, now=now):
            due_at, id = part.begin
            rows = await session.change(
                query("claim_others"),
                node, lane, due_at, id, part.end, limit, LOOK_ROWS, endpoints, tenants, size,
            )  # fmt: skip
            leased = leased_of([row[:-2] for row in rows], node)
            *_, last_due, last_id = rows[0]
            last: Key | None = None if last_id is None else (last_due, last_id)
            part.reached(
                (leased[-1].due_at, leased[-1].id) if is_full(leased, limit=limit, size=size) else last
            )
            if leased:
                break  # what was found is not kept waiting for another look
        return leased
