"""Retention row by row, a few hundred rows at a time, where no whole day can be dropped.

`retention.py` drops days that are large and old. This goes through the rest (`walks.py`): days with few rows, rows that
outlived their day, and then keys, notices and receipts. Each step is a short transaction, and looks that find nothing write
nothing. One node at a time prunes, by a lock that its session holds.

Deleting is safe beside all other work: an event's row is locked before the last check that nobody needs it, and whoever
makes a new delivery of an old event (`replays.py`) locks that row as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from surehook.core.ids import floor
from surehook.core.limits import CLOSINGS_KEPT_MS
from surehook.ledgers.common.indexes import AHEAD_MS
from surehook.ledgers.postgres.cursors import Cursors
from surehook.ledgers.postgres.days import Day
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query
from surehook.ledgers.postgres.walks import (
    BODIES,
    EVENTS,
    FINISHED,
    KEPT_WALK,
    STEP_ROWS,
    Fresh,
    Kept,
)

# Pages of keys that one step reads: their table is walked itself.
STEP_PAGES = 64
# Nothing depends on the row of an evicted node.
NODES_KEPT_MS = 24 * 3_600_000
# With so many changes of the count of dead letters, they are added up.
ADDED_UP_FROM = 500
PRUNE_LOCK = 0x5375_7265_5072


class PostgresPruning:
    """All walks, one after another, and then keys, notices and receipts."""

    def __init__(self) -> None:
        self._fresh = {kind: Fresh(kind) for kind in (FINISHED, EVENTS, BODIES)}
        self._kept = Kept()
        # Of the round: the walks of each kind, the one through kept rows, and the rest.
        self._stage = 0
        # The next page of keys.
        self._page = 0
        self._cursors = Cursors()

    async def step(
        self,
        session: PostgresSession,
        days: Sequence[Day],
        *,
        events_before: int,
        bodies_before: int,
        limit: int,
        now: int,
    ) -> tuple[int, bool]:
        """Remove some of the next rows. Return how many, and True at the end of a round of all walks."""
        befores = {FINISHED: events_before, EVENTS: events_before}
        # Otherwise bodies are removed with their events.
        if bodies_before > events_before:
            befores[BODIES] = bodies_before
        if self._stage == 0:
            await self._cursors.load(session, shared=KEPT_WALK)
        limit = min(limit, STEP_ROWS)
        kinds = list(befores)
        if self._stage < len(kinds):
            kind = kinds[self._stage]
            removed, is_over = await self._fresh[kind].step(
                session, days, self._cursors, before=befores[kind], limit=limit
            )
        elif self._stage == len(kinds):
            removed, is_over = await self._kept.step(
                session, days, self._cursors, befores=befores, limit=limit
            )
        else:
            removed, is_over = await self._prune_rest(session, before=events_before, limit=limit, now=now)
        if is_over:
            self._stage = self._stage + 1 if self._stage <= len(kinds) else 0
        return removed, is_over and self._stage == 0

    async def _prune_rest(
        self, session: PostgresSession, *, before: int, limit: int, now: int
    ) -> tuple[int, bool]:
        """Prune the rest in one statement, since every statement costs something each minute, even if nothing is old."""
        pages = (self._page, 0), (self._page + STEP_PAGES, 0)
        ((removed, there),) = await session.change(
            query("prune_rest"), *pages, now, floor(before + AHEAD_MS), before, limit, now - NODES_KEPT_MS,
            now - CLOSINGS_KEPT_MS,
        )  # fmt: skip
        if removed == limit:
            return removed, False
        self._page += STEP_PAGES
        if self._page < there:
            return removed, False
        self._page = 0
        return removed, True


async def add_dead_letters_up(session: PostgresSession) -> None:
    """Add up the changes of the count of dead letters if there are many."""
    if await session.value(query("many_dead_letter_changes"), ADDED_UP_FROM):
        await session.change(query("add_dead_letters_up"))
