"""How many deliveries wait where. Counted in partial indexes; a count that took long is kept for a while."""

from __future__ import annotations

from surehook.core.model import LANES
from surehook.ledgers.common.keeping import Kept
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query
from surehook.ports.reading import LaneCount


class Counts:
    def __init__(self) -> None:
        self._kept = Kept()

    async def lanes(self, session: Session, *, now: int) -> list[LaneCount]:
        kept: list[LaneCount] | None = self._kept.get("lanes")
        if kept is not None:
            return kept
        started = self._kept.start()
        rows = await session.rows(query("count_lanes"), now)
        found = {(row["kind"], row["lane"]): row for row in rows}

        def of(kind: str, lane: int) -> int:
            return found[kind, lane]["rows"] if (kind, lane) in found else 0

        counts = [
            LaneCount(
                in_flight=of("held", lane),
                ready=of("ready", lane),
                scheduled=of("scheduled", lane),
                parked=of("parked", lane),
                oldest_due_at=found["ready", lane]["oldest"] if ("ready", lane) in found else None,
            )
            for lane in range(len(LANES))
        ]
        self._kept.put("lanes", counts, started=started)
        return counts

    async def parked(self, session: Session) -> dict[tuple[bytes, str], int]:
        kept: dict[tuple[bytes, str], int] | None = self._kept.get("parked")
        if kept is None:
            started = self._kept.start()
            rows = await session.rows(query("count_parked"))
            kept = {(endpoint, reason): count for endpoint, reason, count in rows}
            self._kept.put("parked", kept, started=started)
        return dict(kept)
