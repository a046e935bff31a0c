"""The lists, and single deliveries with their history, for every SQL ledger. Only lists wait for SQLAlchemy."""

from __future__ import annotations

from surehook.core.model import Attempt, Event
from surehook.ledgers.common import attempts, replays
from surehook.ledgers.common.sessions import Sessions
from surehook.ports.reading import DeliveryFilter, DeliveryView, EventFilter, NoticeFilter, ReplayJob
from surehook.ports.registry import Page


class ReadingMethods(Sessions):
    """Implements the parts of `ports.reading.LedgerReading` that every SQL ledger does alike."""

    async def event(self, event: bytes) -> Event | None:
        await self._import_lists()
        from surehook.ledgers.common import lists

        return await self._list(lists.event, event)

    async def events(self, where: EventFilter, *, limit: int, after: bytes | None) -> Page:
        await self._import_lists()
        from surehook.ledgers.common import lists

        indexes = await self._list_indexes()
        return await self._list(lists.events, where, limit=limit, after=after, indexes=indexes)

    async def delivery(self, delivery: bytes) -> DeliveryView | None:
        await self._import_lists()
        from surehook.ledgers.common import deliveries

        return await self._list(deliveries.delivery, delivery)

    async def deliveries(self, where: DeliveryFilter, *, limit: int, after: bytes | None) -> Page:
        await self._import_lists()
        from surehook.ledgers.common import deliveries

        indexes = await self._list_indexes()
        return await self._list(deliveries.deliveries, where, limit=limit, after=after, indexes=indexes)

    async def attempts(self, delivery: bytes) -> list[Attempt]:
        return await self._show(attempts.attempts, delivery)

    async def dead_letters(self, where: DeliveryFilter, *, limit: int, after: bytes | None) -> Page:
        await self._import_lists()
        from surehook.ledgers.common import deliveries

        indexes = await self._list_indexes()
        return await self._list(deliveries.dead_letters, where, limit=limit, after=after, indexes=indexes)

    async def notices(self, where: NoticeFilter, *, limit: int, after: bytes | None) -> Page:
        await self._import_lists()
        from surehook.ledgers.common import lists

        return await self._list(lists.notices, where, limit=limit, after=after)

    async def replay(self, job: bytes) -> ReplayJob | None:
        return await self._show(replays.replay, job)

    async def unfinished_replays(self) -> list[ReplayJob]:
        return await self._show(replays.unfinished_replays)
