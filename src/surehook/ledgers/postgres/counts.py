"""How many deliveries wait where. Counted in partial indexes; a count that took long is kept for a while.

Every process on the ledger counts for itself, so counting takes a smaller share of the time than on one machine.
Parked rows, which may be a million, are counted in one walk for all who ask.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from surehook.core.model import LANES
from surehook.ledgers.common.keeping import Kept
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query
from surehook.ports.reading import LaneCount

SHARE = 50  # one part in so many of one connection's time: a million parked rows are counted every quarter of a minute


class Counts:
    def __init__(self) -> None:
        self._kept = Kept(share=SHARE)

    async def lanes(self, session: Session, *, now: int) -> list[LaneCount]:
        parked = [0 for _ in LANES]
        for row in await self._parked(session):
            parked[row["lane"]] += row["rows"]
        rows = await self._counted("lanes", lambda: session.rows(query("count_lanes"), now))
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
            )
            for lane in range(len(LANES))
        ]

    async def parked(self, session: Session) -> dict[tuple[bytes, str], int]:
        counts: dict[tuple[bytes, str], int] = {}
        for row in await self._parked(session):
            group = row["endpoint"], row["parked"]
            counts[group] = counts.get(group, 0) + row["rows"]
        return counts

    async def dead_letters(self, session: Session) -> int:
        """Kept up by triggers: it says what a list says, and costs the same however many there are."""
        (row,) = await session.rows(query("count_dead_letters"))
        return int(row["rows"])

    async def _parked(self, session: Session) -> Sequence[Any]:
        return await self._counted("parked", lambda: session.rows(query("count_parked")))

    async def _counted(self, name: str, count: Callable[[], Awaitable[Sequence[Any]]]) -> Sequence[Any]:
        kept: Sequence[Any] | None = self._kept.get(name)
        if kept is not None:
            return kept
        started = self._kept.start()
        rows = await count()
        self._kept.put(name, rows, started=started)
        return rows
