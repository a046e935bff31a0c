"""Retention, and the days to make and to index: the upkeep of one node."""

from __future__ import annotations

from collections.abc import Sequence

from surehook.core.instants import MINUTE_MS
from surehook.ledgers.postgres.days import Day, days
from surehook.ledgers.postgres.indexing import index_one
from surehook.ledgers.postgres.partitions import try_to_make_days
from surehook.ledgers.postgres.prune import PRUNE_LOCK, PostgresPruning, add_dead_letters_up
from surehook.ledgers.postgres.retention import drop_one_empty, retire_one
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query

# Interval between looks for days to make and to index, and at their sizes: the catalog takes 5 ms of CPU.
LOOK_MS = 10 * MINUTE_MS


class Housekeeper:
    """Prunes, makes the days to come, and indexes the days that are over."""

    def __init__(self) -> None:
        self._walks = PostgresPruning()
        self._days: list[Day] = []
        # The partitions that `_days` describes.
        self._days_are: str | None = None
        self._looked_at: int | None = None

    async def prune(
        self, session: PostgresSession, *, events_before: int, bodies_before: int, limit: int, now: int
    ) -> int:
        """Prune up to `limit` rows, and return how many. One node at a time prunes; others have nothing to do.

        A day that is dropped whole counts as `limit` rows, so that the caller pauses and asks again. Days to come are made
        here too, and days that are over get their indexes, since this is called often and may take its time.
        """
        is_due = self._looked_at is None or not 0 <= now - self._looked_at < LOOK_MS
        is_made = not is_due or await try_to_make_days(session, now=now)
        if not await session.value(query("try_lock"), PRUNE_LOCK):
            return 0
        try:
            if is_due and not await index_one(session, now=now) and is_made:
                self._looked_at = now
            await add_dead_letters_up(session)
            there = await self._days_there(session, anew=is_due)
            if await retire_one(
                session, there, events_before=events_before, bodies_before=bodies_before, now=now
            ):
                self._days_are = None
                return limit
            removed = await self._prune_rows(session, there, events_before, bodies_before, limit, now)
            if removed < limit:
                await drop_one_empty(session, there, events_before=events_before, now=now)
            return removed
        finally:
            await session.value(query("unlock"), PRUNE_LOCK)

    async def _days_there(self, session: PostgresSession, *, anew: bool) -> list[Day]:
        """Return the days. Their sizes may be old, but not the list of partitions: another node may have dropped one."""
        there = await session.value(query("partitions_there"))
        if anew or there != self._days_are:
            self._days, self._days_are = await days(session), there
        return self._days

    async def _prune_rows(
        self,
        session: PostgresSession,
        days: Sequence[Day],
        events_before: int,
        bodies_before: int,
        limit: int,
        now: int,
    ) -> int:
        removed, is_end = 0, False
        while removed < limit and not is_end:
            count, is_end = await self._walks.step(
                session,
                days,
                events_before=events_before,
                bodies_before=bodies_before,
                limit=limit - removed,
                now=now,
            )
            removed += count
        return removed
