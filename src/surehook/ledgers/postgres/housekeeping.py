"""Keeping house: retention, and what stands in the place of a backup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from surehook.core.errors import Problem
from surehook.core.instants import MINUTE_MS
from surehook.ledgers.postgres.days import Day, days
from surehook.ledgers.postgres.desk import Desk
from surehook.ledgers.postgres.indexing import index_one
from surehook.ledgers.postgres.partitions import try_to_make_days
from surehook.ledgers.postgres.prune import PRUNE_LOCK, Pruning, add_dead_letters_up
from surehook.ledgers.postgres.retention import drop_one_empty, retire_one
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query

# Between looks for days to make and to index, and at their sizes: looking through the catalog costs 5 ms of CPU.
LOOK_MS = 10 * MINUTE_MS


class Housekeeping(Desk):
    def __init__(self, url: str, **settings: Any) -> None:
        super().__init__(url, **settings)
        self._walks = Pruning()
        self._days: list[Day] = []
        self._days_are: str | None = None  # of which partitions `_days` tells
        self._looked_at: int | None = None

    async def prune(self, *, events_before: int, bodies_before: int, limit: int, now: int) -> int:
        """A day that goes whole counts as `limit` rows, so that the caller rests and asks again.

        One node at a time prunes; for the others there is nothing to do. Days to come are made here too, and days
        that are over get their indexes, since this is called often and may take its time.
        """
        async with self._pruning.lend() as session:
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

    async def _days_there(self, session: Session, *, anew: bool) -> list[Day]:
        """Sizes may be old; which partitions there are may not: another node may have dropped one."""
        there = await session.value(query("partitions_there"))
        if anew or there != self._days_are:
            self._days, self._days_are = await days(session), there
        return self._days

    async def _prune_rows(
        self,
        session: Session,
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

    async def index_lists(self) -> bool:
        return False  # days are indexed when they are over, with retention

    async def backup(self, path: str) -> None:
        raise Problem(
            "backup_unsupported",
            "PostgreSQL has its own backups, of one instant and while work goes on",
            hint="pg_dump --format=custom, or pg_basebackup with WAL archiving for any point in time",
            status=409,
        )
