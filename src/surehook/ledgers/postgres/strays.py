"""Strays: rows that became ready behind the position of claims. They are noted in a small table, and claimed from there.

An index by due time keeps the entries of vanished rows, and of those who are skipped because of a backlog. So claims begin
where the last one ended (marks.py, ledgers/passes.py), and rows that become ready out of that order are noted: in the same
transaction if they are freed or handed back, and afterwards by the process whose commit made them visible late
(ledgers/late.py). A note names up to 64 rows of one endpoint, and is deleted once none of them is ready. It is a hint: only
the row itself decides if it may be claimed.

Notes are ordered by transaction. Each claim checks for notes from some transaction on, and learns from which one to check
next time: the oldest that was under way. So it finds a note however late that was committed, never reads entries of deleted
notes, and without notes pays for one look at the end of an index.

The process that should write a note may be dead. Rows of a transaction that was under way while claims went by are therefore
looked for at the position that claims had (under_way.py).

The number of notes is bounded (stray_notes.py). Rows beyond the bound are found by looking back, and by passes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic

from surehook.core.model import LANES, Delivery, Lane
from surehook.ledgers.postgres.nodes import check_fence, leased_of
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query
from surehook.ledgers.postgres.under_way import Position, UnderWay, snapshot_of
from surehook.ports.ledger import Skip

# Notes that one claim reads, and rows that they name: some milliseconds.
LOOK_NOTES = 512
LOOK_ROWS = 1_024
NOBODY = Skip()


class Strays(Generic[Position]):
    """One node's knowledge of each lane's notes and of transactions under way.

    When such a transaction is over, `lower` is called with the lane and the position of claims when it began. `beginning` is
    the position before everything.
    """

    def __init__(self, beginning: Position, lower: Callable[[Lane, Position], None]) -> None:
        self._since = [0 for _ in LANES]
        self._are_here = [False for _ in LANES]
        self._under_way = [UnderWay(beginning) for _ in LANES]
        self._lower = lower

    def since(self, lane: Lane) -> int:
        """Return the transaction from which on to check for notes."""
        return self._since[lane]

    def saw(self, lane: Lane, *, has_notes: bool, snapshot: str, place: Position) -> None:
        """Take over what a claim has seen. `place` is the position that it leaves behind.

        If there are no notes, the next check begins at the oldest transaction that was under way.
        """
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
        session: PostgresSession,
        lane: Lane,
        *,
        node: bytes,
        limit: int,
        due_by: int,
        size: int,
        before: int,
        skip: Skip = NOBODY,
    ) -> list[Delivery]:
        """Lease rows that notes name and that are due before the position of claims."""
        rows = await session.change(
            query("take_strays"),
            node, lane, self._since[lane], due_by, limit, size, list(skip.endpoints), list(skip.tenants),
            LOOK_NOTES, LOOK_ROWS, before,
        )  # fmt: skip
        return leased_of(rows, node)

    async def look(self, session: PostgresSession, lane: Lane, *, place: Position) -> None:
        """Check for notes without a claim."""
        found = await session.row(query("strays_here"), lane, self._since[lane])
        assert found is not None
        self.saw(lane, has_notes=found["has_notes"], snapshot=found["snapshot"], place=place)

    async def hand_over(
        self,
        session: PostgresSession,
        lane: Lane,
        *,
        node: bytes,
        limit: int,
        due_by: int,
        before: int,
        passed: int,
    ) -> list[bytes]:
        """Mark rows that notes name as handed over to the broker, and return their ids.

        These are unmarked rows due before `before`, and lost ones with a mark below `passed`: the position of sweeps.
        """
        if limit <= 0 or not self._are_here[lane]:
            return []
        rows = await session.change(
            query("hand_over_strays"),
            node, lane, due_by, limit, self._since[lane], LOOK_NOTES, before, passed,
        )  # fmt: skip
        check_fence(rows, node)
        return [row[1] for row in rows if row[1] is not None]
