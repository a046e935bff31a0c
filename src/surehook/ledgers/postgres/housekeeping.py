"""Keeping house: retention, and what stands in the place of a backup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from surehook.core.errors import Problem
from surehook.ledgers.postgres.days import Day, days
from surehook.ledgers.postgres.desk import Desk
from surehook.ledgers.postgres.indexing import index_one
from surehook.ledgers.postgres.partitions import try_to_make_days
from surehook.ledgers.postgres.prune import PRUNE_LOCK, Pruning, add_dead_letters_up
from surehook.ledgers.postgres.retention import drop_one_empty, retire_one
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query


class Housekeeping(Desk):
    def __init__(self, url: str, **settings: Any) -> None:
        super().__init__(url, **settings)
        self._walks = Pruning()

    async def prune(self, *, events_before: int, bodies_before: int, limit: int, now: int) -> int:
        """A day that goes whole counts as `limit` rows, so that the caller rests and asks again.

        One node at a time prunes; for the others there is nothing to do. Days to come are made here too, and days
        that are over get their indexes, since this is called often and may take its time.
        """
        async with self._pruning.lend() as session:
            await try_to_make_days(session, now=now)
            if not await session.value(query("try_lock"), PRUNE_LOCK):
                return 0
            try:
                await index_one(session, now=now)
                await add_dead_letters_up(session)
                there = await days(session)
                if await retire_one(
                    session, there, events_before=events_before, bodies_before=bodies_before, now=now
                ):
                    return limit
                removed = await self._prune_rows(session, there, events_before, bodies_before, limit, now)
                if removed < limit:
                    await drop_one_empty(session, there, events_before=events_before, now=now)
                return removed
            finally:
                await session.value(query("unlock"), PRUNE_LOCK)

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
