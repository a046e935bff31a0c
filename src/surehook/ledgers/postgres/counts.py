"""Counts of waiting deliveries. They read partial indexes; a count that took long is reused for a while.

Every process counts for itself, so counting may take a smaller share of the time than on one machine. Parked rows, which may
be a million, are counted in one pass for both counts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import asyncpg

from surehook.core.model import LANES
from surehook.ledgers.common.count_cache import CountCache
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query
from surehook.ports.reading import LaneCount

# Counting takes at most 1/50 of one connection's time: a million parked rows are counted every 15 seconds.
SHARE = 50

R = TypeVar("R")


class PostgresCounts:
    def __init__(self) -> None:
        self._cache = CountCache(share=SHARE)

    async def lanes(self, session: PostgresSession, *, now: int) -> list[LaneCount]:
        parked = [0 for _ in LANES]
        for row in await self._parked(session):
            parked[row["lane"]] += row["rows"]

        async def count() -> tuple[Sequence[asyncpg.Record], int]:
            return await session.rows(query("count_lanes"), now), now

        rows, counted_at = await self._counted("lanes", count)
        found = {(row["kind"], row["lane"]): row for row in rows}

        def of(kind: str, lane: int) -> int:
            return found[kind, lane]["rows"] if (kind, lane) in found else 0

        return [
            LaneCount(
                held=of("held", lane),
                ready=of("ready", lane),
                scheduled=of("scheduled", lane),
                parked=parked[lane],
                oldest_due_at=found["ready", lane]["oldest"] if ("ready", lane) in found else None,
                counted_at=counted_at,
            )
            for lane in range(len(LANES))
        ]

    async def parked(self, session: PostgresSession) -> dict[tuple[bytes, str], int]:
        counts: dict[tuple[bytes, str], int] = {}
        for row in await self._parked(session):
            group = row["endpoint"], row["parked"]
            counts[group] = counts.get(group, 0) + row["rows"]
        return counts

    async def dead_letters(self, session: PostgresSession) -> int:
        """Count dead letters. Triggers keep the count, so it agrees with lists and costs the same however many there are."""
        (row,) = await session.rows(query("count_dead_letters"))
        return int(row["rows"])

    async def _parked(self, session: PostgresSession) -> Sequence[asyncpg.Record]:
        return await self._counted("parked", lambda: session.rows(query("count_parked")))

    async def _counted(self, name: str, count: Callable[[], Awaitable[R]]) -> R:
        kept: R | None = self._cache.get(name)
        if kept is not None:
            return kept
        started = self._cache.start()
        answer = await count()
        self._cache.put(name, answer, started=started)
        return answer
