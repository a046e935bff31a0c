"""Reading and replaying, as far as PostgreSQL differs: open deliveries, counts, and deliveries made again."""

from __future__ import annotations

from collections.abc import Iterator

from surehook.core.errors import CommitUnknown
from surehook.core.model import Delivery
from surehook.ledgers.common.reading import ReadingMethods
from surehook.ledgers.postgres import replays
from surehook.ledgers.postgres.counts import PostgresCounts
from surehook.ledgers.postgres.rows import open_delivery
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.sessions import PostgresSessions
from surehook.ports.reading import LaneCount, ReplayJob, Room


class PostgresReading(PostgresSessions, ReadingMethods):
    """Implements `ports.reading.LedgerReading`."""

    _counts: PostgresCounts

    async def open_delivery(self, delivery: bytes) -> tuple[Delivery, bytes | None] | None:
        return await self._read(open_delivery, delivery)

    async def lane_counts(self, *, now: int) -> list[LaneCount]:
        return await self._count(self._counts.lanes, now=now)

    async def parked_counts(self) -> dict[tuple[bytes, str], int]:
        return await self._count(self._counts.parked)

    async def dead_letter_count(self) -> int:
        return await self._read(self._counts.dead_letters)

    def room(self) -> Room | None:
        # The disk belongs to another machine.
        return None

    async def size_bytes(self) -> int | None:
        return await self._read(_size_bytes)

    # All of these recognize their own rows, so they run again if the answer to the commit was lost.

    async def dismiss(self, delivery: bytes, *, note: str, now: int) -> bool:
        try:
            return await self._write(replays.dismiss, delivery, note=note, now=now)
        except CommitUnknown:
            return await self._surely(replays.dismiss_again, delivery, note=note, now=now)

    async def resend(
        self, originals: list[bytes], replacements: list[Delivery], *, now: int, once: bool = False
    ) -> list[bytes]:
        began = self._late_rows.begin()
        made = await self._surely(replays.resend, originals, replacements, now=now, once=once)
        self._late_rows.ended(began, _ready(replacements), now=now)
        return made

    async def due_now(self, delivery: bytes, *, now: int) -> bool:
        began = self._late_rows.begin()
        done = await self._surely(replays.due_now, delivery, now=now)
        self._late_rows.ended(began, [(delivery, now)], now=now)
        return done

    async def add_replay(self, job: ReplayJob) -> None:
        await self._surely(replays.add_replay, job)

    async def advance_replay(
        self,
        before: ReplayJob,
        after: ReplayJob,
        originals: list[bytes],
        replacements: list[Delivery],
        *,
        now: int,
    ) -> ReplayJob | None:
        began = self._late_rows.begin()
        moved = await self._surely(replays.advance_replay, before, after, originals, replacements, now=now)
        self._late_rows.ended(began, _ready(replacements), now=now)
        return moved


def _ready(deliveries: list[Delivery]) -> Iterator[tuple[bytes, int]]:
    return ((delivery.id, delivery.due_at) for delivery in deliveries if delivery.parked is None)


async def _size_bytes(session: PostgresSession) -> int:
    """Return the size of the whole database, which should hold nothing else, from the sizes of its files."""
    (row,) = await session.rows("select pg_database_size(current_database()) as bytes")
    return int(row["bytes"])
