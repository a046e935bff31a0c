"""Reading and replaying, as far as SQLite differs: open deliveries, counts, and deliveries made again."""

from __future__ import annotations

from surehook.core.model import Delivery
from surehook.ledgers.common.reading import ReadingMethods
from surehook.ledgers.sqlite import replays
from surehook.ledgers.sqlite.counts import SqliteCounts
from surehook.ledgers.sqlite.others import SqliteOthers
from surehook.ledgers.sqlite.rows import open_delivery
from surehook.ledgers.sqlite.sessions import SqliteSessions
from surehook.ports.reading import LaneCount, ReplayJob, Room


class SqliteReading(SqliteSessions, ReadingMethods):
    """Implements `ports.reading.LedgerReading`."""

    _counts: SqliteCounts
    _others: SqliteOthers

    async def open_delivery(self, delivery: bytes) -> tuple[Delivery, bytes | None] | None:
        return await self._read(open_delivery, delivery)

    async def lane_counts(self, *, now: int) -> list[LaneCount]:
        return await self._count(self._counts.lanes, now=now)

    async def parked_counts(self) -> dict[tuple[bytes, str], int]:
        return await self._count(self._counts.parked)

    async def dead_letter_count(self) -> int:
        return await self._read(self._counts.dead_letters)

    def room(self) -> Room | None:
        return self._file.room()

    async def size_bytes(self) -> int | None:
        return self._file.size_bytes()

    async def dismiss(self, delivery: bytes, *, note: str, now: int) -> bool:
        return await self._write(replays.dismiss, delivery, note=note, now=now)

    async def resend(
        self, originals: list[bytes], replacements: list[Delivery], *, now: int, once: bool = False
    ) -> list[bytes]:
        work = self._others.lowering(replays.resend, _first_due(replacements))
        return await self._add(work, originals, replacements, now=now, once=once)

    async def due_now(self, delivery: bytes, *, now: int) -> bool:
        return await self._write(self._others.lowering(replays.due_now, now), delivery, now=now)

    async def add_replay(self, job: ReplayJob) -> None:
        await self._write(replays.add_replay, job)

    async def advance_replay(
        self,
        before: ReplayJob,
        after: ReplayJob,
        originals: list[bytes],
        replacements: list[Delivery],
        *,
        now: int,
    ) -> ReplayJob | None:
        work = self._others.lowering(replays.advance_replay, _first_due(replacements))
        return await self._add(work, before, after, originals, replacements, now=now)


def _first_due(deliveries: list[Delivery]) -> int | None:
    return min([delivery.due_at for delivery in deliveries], default=None)
