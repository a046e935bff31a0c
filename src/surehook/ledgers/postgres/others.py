"""Claims that skip some endpoints and tenants, however many of their rows are due first.

The statement reads a bounded number of index entries (`LOOK_ROWS`), so it takes milliseconds beside a backlog of millions.
`Passes` chooses which, and how many statements a call has.
"""

from __future__ import annotations

from surehook.core.model import Delivery, Lane
from surehook.ledgers.late import LATE_MS
from surehook.ledgers.passes import Key, Passes
from surehook.ledgers.postgres.nodes import leased_of
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query
from surehook.ledgers.postgres.strays import Strays
from surehook.ports.ledger import Skip, is_full

# A few milliseconds of reading.
LOOK_ROWS = 5_000
# Statements of one call while it catches up with rows that fell due unseen.
LOOKS = 40
# Statements of one call at such rows although others come.
OWED_LOOKS = 8


class PostgresOthers:
    """The positions of this node's claims."""

    def __init__(self, strays: Strays[int]) -> None:
        self._strays = strays
        self.passes = Passes(owed_looks=OWED_LOOKS)

    async def claim(
        self,
        session: PostgresSession,
        lane: Lane,
        *,
        node: bytes,
        limit: int,
        due_by: int,
        now: int,
        size: int,
        skip: Skip,
        fresh: bool = False,
    ) -> list[Delivery]:
        leased: list[Delivery] = []
        if self._strays.are_here(lane):
            leased = await self._strays.take(
                session, lane,
                node=node, limit=limit, due_by=due_by, size=size, before=self.passes.seen(lane, now=now), skip=skip,
            )  # fmt: skip
            if leased:
                return leased
        endpoints, tenants = list(skip.endpoints), list(skip.tenants)
        for part in self.passes.parts(lane, due_by=due_by, now=now, looks=LOOKS, fresh=fresh):
            due_at, id = part.begin
            rows = await session.change(
                query("claim_others"),
                lane, self._strays.since(lane), node, due_at, id, part.end, limit, LOOK_ROWS, endpoints, tenants, size,
            )  # fmt: skip
            leased = leased_of([row[:-4] for row in rows], node)
            *_, last_due, last_id, has_notes, snapshot = rows[0]
            last: Key | None = None if last_id is None else (last_due, last_id)
            part.reached(
                (leased[-1].due_at, leased[-1].id) if is_full(leased, limit=limit, size=size) else last
            )
            self._strays.saw(lane, has_notes=has_notes, snapshot=snapshot, place=now - LATE_MS)
            if leased:
                # Rows that were found do not wait for another look.
                break
        return leased
