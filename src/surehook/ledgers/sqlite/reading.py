"""The methods of lists and stories, on the reading session where they only look."""

from __future__ import annotations

from typing import Any

from surehook.core.model import Attempt, Delivery, Event
from surehook.ledgers.sqlite import replays, stories
from surehook.ledgers.sqlite.counts import Counts
from surehook.ledgers.sqlite.desk import Desk
from surehook.ports.reading import (
    DeliveryFilter,
    DeliveryView,
    EventFilter,
    LaneCount,
    NoticeFilter,
    ReplayJob,
)
from surehook.ports.registry import Page


class Reads(Desk):
    def __init__(self, path: str, **settings: Any) -> None:
        super().__init__(path, **settings)
        self._counts = Counts(keeps=not self._inline)

    async def event(self, event: bytes) -> Event | None:
        found: Event | None = await self._look("lists", "event", event)
        return found

    async def events(self, where: EventFilter, *, limit: int, after: bytes | None) -> Page:
        page: Page = await self._look("lists", "events", where, limit=limit, after=after, in_blocks=True)
        return page

    async def delivery(self, delivery: bytes) -> DeliveryView | None:
        found: DeliveryView | None = await self._look("deliveries", "delivery", delivery)
        return found

    async def deliveries(self, where: DeliveryFilter, *, limit: int, after: bytes | None) -> Page:
        core_sql = await self._core_sql()
        lists = core_sql.deliveries
        page: Page = await self._read(
            core_sql.look, lists.deliveries, where, limit=limit, after=after, walked=lists.IN_ONE_FILE
        )
        return page

    async def open_delivery(self, delivery: bytes) -> tuple[Delivery, bytes | None] | None:
        return await self._read(stories.open_delivery, delivery)

    async def attempts(self, delivery: bytes) -> list[Attempt]:
        return await self._read(stories.attempts, delivery)

    async def dead_letters(self, where: DeliveryFilter, *, limit: int, after: bytes | None) -> Page:
        core_sql = await self._core_sql()
        lists = core_sql.deliveries
        page: Page = await self._read(
            core_sql.look, lists.dead_letters, where, limit=limit, after=after, walked=lists.IN_ONE_FILE
        )
        return page

    async def notices(self, where: NoticeFilter, *, limit: int, after: bytes | None) -> Page:
        page: Page = await self._look("lists", "notices", where, limit=limit, after=after)
        return page

    async def _look(self, module: str, name: str, *args: Any, **kwargs: Any) -> Any:
        core_sql = await self._core_sql()
        return await self._read(core_sql.look, getattr(getattr(core_sql, module), name), *args, **kwargs)

    async def lane_counts(self, *, now: int) -> list[LaneCount]:
        return await self._count(self._counts.lanes, now=now)

    async def parked_counts(self) -> dict[tuple[bytes, str], int]:
        return await self._count(self._counts.parked)

    async def dead_letter_count(self) -> int:
        return await self._read(self._counts.dead_letters)

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

    async def replay(self, job: bytes) -> ReplayJob | None:
        return await self._read(replays.replay, job)

    async def unfinished_replays(self) -> list[ReplayJob]:
        return await self._read(replays.unfinished_replays)


def _first_due(deliveries: list[Delivery]) -> int | None:
    return min([delivery.due_at for delivery in deliveries], default=None)
