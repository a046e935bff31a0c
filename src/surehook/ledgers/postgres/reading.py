"""The methods of lists and stories. What only looks has sessions of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from surehook.core.errors import CommitUnknown
from surehook.core.model import Attempt, Delivery, Event
from surehook.ledgers.postgres import replays, stories
from surehook.ledgers.postgres.counts import Counts
from surehook.ledgers.postgres.desk import Desk
from surehook.ledgers.postgres.session import Session
from surehook.ports.reading import (
    DeliveryFilter,
    DeliveryView,
    EventFilter,
    LaneCount,
    NoticeFilter,
    ReplayJob,
    Room,
)
from surehook.ports.registry import Page


class Reads(Desk):
    def __init__(self, url: str, **settings: Any) -> None:
        super().__init__(url, **settings)
        self._counts = Counts()

    async def event(self, event: bytes) -> Event | None:
        found: Event | None = await self._look("lists", "event", event)
        return found

    async def events(self, where: EventFilter, *, limit: int, after: bytes | None) -> Page:
        core_sql = await self._core_sql()
        page: Page = await self._read(core_sql.look_at_events, where, limit=limit, after=after)
        return page

    async def delivery(self, delivery: bytes) -> DeliveryView | None:
        found: DeliveryView | None = await self._look("deliveries", "delivery", delivery)
        return found

    async def deliveries(self, where: DeliveryFilter, *, limit: int, after: bytes | None) -> Page:
        core_sql = await self._core_sql()
        page: Page = await self._read(core_sql.look_at_deliveries, where, limit=limit, after=after)
        return page

    async def open_delivery(self, delivery: bytes) -> tuple[Delivery, bytes | None] | None:
        return await self._read(stories.open_delivery, delivery)

    async def attempts(self, delivery: bytes) -> list[Attempt]:
        return await self._read(stories.attempts, delivery)

    async def dead_letters(self, where: DeliveryFilter, *, limit: int, after: bytes | None) -> Page:
        core_sql = await self._core_sql()
        page: Page = await self._read(core_sql.look_at_dead_letters, where, limit=limit, after=after)
        return page

    async def notices(self, where: NoticeFilter, *, limit: int, after: bytes | None) -> Page:
        page: Page = await self._look("lists", "notices", where, limit=limit, after=after)
        return page

    async def _look(self, module: str, name: str, *args: Any, **kwargs: Any) -> Any:
        core_sql = await self._core_sql()
        return await self._read(core_sql.look, getattr(getattr(core_sql, module), name), *args, **kwargs)

    def room(self) -> Room | None:
        return None  # the disk is another machine's

    async def size_bytes(self) -> int | None:
        return await self._read(_size_bytes)

    async def lane_counts(self, *, now: int) -> list[LaneCount]:
        return await self._count(self._counts.lanes, now=now)

    async def parked_counts(self) -> dict[tuple[bytes, str], int]:
        return await self._count(self._counts.parked)

    # Run again where the answer to the commit was lost: all of these know their own work.

    async def dead_letter_count(self) -> int:
        return await self._read(self._counts.dead_letters)

    async def dismiss(self, delivery: bytes, *, note: str, now: int) -> bool:
        try:
            return await self._write(replays.dismiss, delivery, note=note, now=now)
        except CommitUnknown:
            return await self._surely(replays.dismiss_again, delivery, note=note, now=now)

    async def resend(
        self, originals: list[bytes], replacements: list[Delivery], *, now: int, once: bool = False
    ) -> list[bytes]:
        began = self._telling.begin()
        made = await self._surely(replays.resend, originals, replacements, now=now, once=once)
        self._telling.ended(began, _ready(replacements), now=now)
        return made

    async def due_now(self, delivery: bytes, *, now: int) -> bool:
        began = self._telling.begin()
        done = await self._surely(replays.due_now, delivery, now=now)
        self._telling.ended(began, [(delivery, now)], now=now)
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
        began = self._telling.begin()
        moved = await self._surely(replays.advance_replay, before, after, originals, replacements, now=now)
        self._telling.ended(began, _ready(replacements), now=now)
        return moved

    async def replay(self, job: bytes) -> ReplayJob | None:
        return await self._read(replays.replay, job)

    async def unfinished_replays(self) -> list[ReplayJob]:
        return await self._read(replays.unfinished_replays)


def _ready(deliveries: list[Delivery]) -> Iterator[tuple[bytes, int]]:
    return ((delivery.id, delivery.due_at) for delivery in deliveries if delivery.parked is None)


async def _size_bytes(session: Session) -> int:
    """The whole database, which is the ledger's own by advice: told from the sizes of its files, no table is read."""
    (row,) = await session.rows("select pg_database_size(current_database()) as bytes")
    return int(row["bytes"])
