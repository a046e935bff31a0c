"""The lists and the stories."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from lab.ledger.hooks import Hooked, reads
from lab.ledger.pages import page
from lab.ledger.sorted_keys import SortedKeys
from lab.ledger.views import event_fits, fits, view
from surehook.core.ids import delivery_range
from surehook.core.model import LANES, Attempt, Delivery, Event, Notice
from surehook.ports.reading import DeliveryFilter, DeliveryView, EventFilter, LaneCount, NoticeFilter, Room
from surehook.ports.registry import Page

_ABOVE_EVERY_ID = b"\xff" * 17


class Reads(Hooked):
    @reads
    def event(self, event: bytes) -> Event | None:
        return self.book.events.get(event)

    @reads
    def events(self, where: EventFilter, *, limit: int, after: bytes | None) -> Page:
        def shown(event: bytes) -> Event | None:
            return self.book.events[event] if event_fits(self.book, event, where) else None

        return page(self.book.event_ids.descending(after), shown, limit=limit)

    @reads
    def delivery(self, delivery: bytes) -> DeliveryView | None:
        return view(self.book, delivery)

    @reads
    def deliveries(self, where: DeliveryFilter, *, limit: int, after: bytes | None) -> Page:
        return self._deliveries(self.book.delivery_ids, where, limit=limit, after=after)

    @reads
    def dead_letters(self, where: DeliveryFilter, *, limit: int, after: bytes | None) -> Page:
        return self._deliveries(self.book.dead_letters, where, limit=limit, after=after)

    @reads
    def dead_letter_count(self) -> int:
        return len(self.book.dead_letters)

    @reads
    def open_delivery(self, delivery: bytes) -> tuple[Delivery, bytes | None] | None:
        row = self.book.rows.get(delivery)
        return None if row is None else (self.book.copy(row), row.holder)

    @reads
    def attempts(self, delivery: bytes) -> list[Attempt]:
        return list(self.book.history.get(delivery, ()))

    @reads
    def notices(self, where: NoticeFilter, *, limit: int, after: bytes | None) -> Page:
        def shown(key: bytes) -> Notice | None:
            notice = self.book.notices[key]
            passes = (
                where.tenant in (None, notice.tenant)
                and where.endpoint in (None, notice.endpoint)
                and where.kind in (None, notice.kind)
                and (where.since is None or notice.at >= where.since)
            )
            return notice if passes else None

        return page(self.book.notice_ids.descending(after), shown, limit=limit)

    def room(self) -> Room | None:
        return None

    @reads
    def size_bytes(self) -> int | None:
        return None

    @reads
    def lane_counts(self, *, now: int) -> list[LaneCount]:
        counts = []
        for lane in range(len(LANES)):
            waiting = self.book.ready[lane]
            ready = waiting.count_upto((now, _ABOVE_EVERY_ID))
            first = waiting.first()
            counts.append(
                LaneCount(
                    held=self.book.held_in_lane[lane],
                    ready=ready,
                    scheduled=len(waiting) - ready,
                    parked=self.book.parked_in_lane[lane],
                    oldest_due_at=first[0] if first is not None and ready else None,
                    counted_at=now,
                )
            )
        return counts

    @reads
    def parked_counts(self) -> dict[tuple[bytes, str], int]:
        return {place: len(group.ids) for place, group in self.book.groups.items()}

    def _deliveries(
        self, ids: SortedKeys[bytes], where: DeliveryFilter, *, limit: int, after: bytes | None
    ) -> Page:
        def shown(delivery: bytes) -> DeliveryView | None:
            seen = view(self.book, delivery)
            assert seen is not None, "an id in the order of ids has a row or a story"
            return seen if fits(self.book, seen, where) else None

        return page(_within(ids, where, after), shown, limit=limit)


def _within(ids: SortedKeys[bytes], where: DeliveryFilter, after: bytes | None) -> Iterator[bytes]:
    """Ids newest first, cut to the event's range where the filter names one."""
    if where.event is None:
        return ids.descending(after)
    low, high = delivery_range(where.event)
    below = high + b"\x00" if after is None else min(after, high + b"\x00")
    return takewhile(lambda delivery: delivery >= low, ids.descending(below))
