"""Retention row by row: what no whole day can take away, a few hundred rows at a time.

`retention.py` drops days that are large and old. This goes through what is left (`walks.py`): days with few rows, the
day that an instant cuts in two where it is small, what outlived its day; and then keys, notices and receipts. Each step
is a short transaction, and looks that find nothing write nothing. One node at a time prunes, by a lock that its session
holds.

Deleting is safe beside everything else: an event's row is locked before the last look for somebody who needs it,
and whoever makes a new delivery of an old event (`replays.py`) holds that row as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from surehook.core.ids import floor
from surehook.core.limits import CLOSINGS_KEPT_MS
from surehook.ledgers.postgres.days import Day
from surehook.ledgers.postgres.places import Marks
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query
from surehook.ledgers.postgres.walks import (
    AHEAD_MS,
    BODIES,
    EVENTS,
    KEPT_WALK,
    STEP_ROWS,
    STORIES,
    Fresh,
    Kept,
)

STEP_PAGES = 64  # of keys, where the table itself is walked
NODES_KEPT_MS = 24 * 3_600_000  # a buried node's row answers nothing that its absence would not
ADDED_UP_FROM = 500  # changes of the count of dead letters: added up once they are more
PRUNE_LOCK = 0x5375_7265_5072


class Pruning:
    """The walks, one after another, and the rest."""

    def __init__(self) -> None:
        self._fresh = {kind: Fresh(kind) for kind in (STORIES, EVENTS, BODIES)}
        self._kept = Kept()
        self._stage = 0  # of the round: the walks of each kind, the one through what is kept, and the rest
        self._page = 0  # of the keys
        self._marks = Marks()

    async def step(
        self,
        session: Session,
        days: Sequence[Day],
        *,
        events_before: int,
        bodies_before: int,
        limit: int,
        now: int,
    ) -> tuple[int, bool]:
        """Remove some of the next rows: how many, and whether all walks have come to the ends of this round."""
        befores = {STORIES: events_before, EVENTS: events_before}
        if bodies_before > events_before:  # else bodies go with their events
            befores[BODIES] = bodies_before
        if self._stage == 0:
            await self._marks.load(session, shared=KEPT_WALK)
        limit = min(limit, STEP_ROWS)
        kinds = list(befores)
        if self._stage < len(kinds):
            kind = kinds[self._stage]
            removed, is_over = await self._fresh[kind].step(
                session, days, self._marks, before=befores[kind], limit=limit
            )
        elif self._stage == len(kinds):
            removed, is_over = await self._kept.step(session, days, self._marks, befores=befores, limit=limit)
        else:
            removed, is_over = await self._prune_rest(session, before=events_before, limit=limit, now=now)
        if is_over:
            self._stage = self._stage + 1 if self._stage <= len(kinds) else 0
        return removed, is_over and self._stage == 0

    async def _prune_rest(self, session: Session, *, before: int, limit: int, now: int) -> tuple[int, bool]:
        """One statement, since a minute in which nothing is old pays for each."""
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


async def add_dead_letters_up(session: Session) -> None:
    """Let the count of dead letters stay a sum of few changes."""
    if await session.value(query("many_dead_letter_changes"), ADDED_UP_FROM):
        await session.change(query("add_dead_letters_up"))
