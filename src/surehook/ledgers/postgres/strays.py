"""Rows that became ready behind where claims begin: noted in a small table, and claimed from there, whatever their depth.

An index by due time keeps the entries of rows that are gone, and beside a backlog those of somebody who is passed over. So
claims begin where the last one ended (marks.py, ledgers/passes.py), and what becomes ready out of that order is noted: in
the same transaction where rows are freed or handed back, and afterwards by whoever's commit brought them late
(ledgers/late.py). A note names up to 64 rows of one endpoint, and goes when none of them is ready any more. It is a hint:
whether a row may be claimed its own row says.

Notes are told by transaction. Each claim asks whether there is one from a transaction on, and learns where to ask from next
time: from the oldest that was under way then. So it finds a note however late that is committed, never passes over entries of
notes that are gone, and pays one look at the end of an index where there are none.

Who should have told may be dead: what a transaction brought that was under way while claims went by is looked for where they
stood (under_way.py).

There is a bound on notes (telling.py). What is beyond it is found as before there were notes: by looking back,
and by passes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic

from surehook.core.model import LANES, Delivery, Lane
from surehook.ledgers.postgres.nodes import check_fence, leased_of
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query
from surehook.ledgers.postgres.under_way import Place, UnderWay, snapshot_of
from surehook.ports.ledger import Skip

LOOK_NOTES = 512  # that one claim looks at
LOOK_ROWS = 1_024  # … and the rows that those name: some milliseconds
NOBODY = Skip()


class Strays(Generic[Place]):
    """What one node knows of each lane's notes, and of transactions under way. Where one is over, `lower` is told the
    lane and where claims stood when it began; `beginning` is the place before everything."""

    def __init__(self, beginning: Place, lower: Callable[[Lane, Place], None]) -> None:
        self._since = [0 for _ in LANES]
        self._are_here = [False for _ in LANES]
        self._under_way = [UnderWay(beginning) for _ in LANES]
        self._lower = lower

    def since(self, lane: Lane) -> int:
        """The transaction from which on to ask for notes."""
        return self._since[lane]

    def saw(self, lane: Lane, *, has_notes: bool, snapshot: str, place: Place) -> None:
        """A claim that leaves `place` behind has asked: where there are no notes, ask again from the oldest transaction that was
        under way."""
        seen = snapshot_of(snapshot)
        self._are_here[lane] = has_notes
        if not has_notes:
            self._since[lane] = seen.oldest
        for behind in self._under_way[lane].saw(seen, place):
            self._lower(lane, behind)

    def are_here(self, lane: Lane) -> bool:
        return self._are_here[lane]

    async def take(
        self,
        session: Session,
        lane: Lane,
        *,
        node: bytes,
        limit: int,
        due_by: int,
        size: int,
        before: int,
        skip: Skip = NOBODY,
    ) -> list[Delivery]:
        """Lease rows that notes name and that are due before this instant, where claims stand."""
        rows = await session.change(
            query("take_strays"),
            node, lane, self._since[lane], due_by, limit, size, list(skip.endpoints), list(skip.tenants),
            LOOK_NOTES, LOOK_ROWS, before,
        )  # fmt: skip
        return leased_of(rows, node)

    async def look(self, session: Session, lane: Lane, *, place: Place) -> None:
        """Ask without a claim."""
        found = await session.row(query("strays_here"), lane, self._since[lane])
        assert found is not None
        self.saw(lane, has_notes=found["has_notes"], snapshot=found["snapshot"], place=place)

    async def hand_over(
        self,
        session: Session,
        lane: Lane,
        *,
        node: bytes,
        limit: int,
        due_by: int,
        before: int,
        passed: int,
    ) -> list[bytes]:
        """Mark rows that notes name as handed over to the broker: unmarked ones that are due before this instant, and lost ones
        with a mark before this one, where sweeps stand."""
        if limit <= 0 or not self._are_here[lane]:
            return []
        rows = await session.change(
            query("hand_over_strays"),
            node, lane, due_by, limit, self._since[lane], LOOK_NOTES, before, passed,
        )  # fmt: skip
        check_fence(rows, node)
        return [row[1] for row in rows if row[1] is not None]
