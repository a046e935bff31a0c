"""Endings without a call in hand (by age, by request, with the endpoint), and what waits too long."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice, takewhile

from msgspec import structs

from lab.ledger.hooks import Hooked, reads, writes
from lab.ledger.rows import Row
from surehook.core.model import Attempt, Delivery, Lane, Notice
from surehook.ports.ledger import NONE_KEPT, AgedGroup, AgedPage, ParkedGroup


class Endings(Hooked):
    @writes
    def end(
        self,
        deliveries: Sequence[Delivery],
        *,
        state: str,
        reason: str | None,
        notices: Sequence[Notice],
        now: int,
        request_headers: Mapping[bytes, bytes] = NONE_KEPT,
    ) -> list[bytes]:
        found = ((self.book.rows.get(delivery.id), delivery) for delivery in deliveries)
        as_read = [
            row
            for row, read in found
            if row is not None and (row.attempt, row.born_at) == (read.attempt, read.born_at)
        ]
        ended = self._end(as_read, state=state, reason=reason, now=now, request_headers=request_headers)
        self._keep_true(notices, asked=[delivery.id for delivery in deliveries], done=ended)
        return ended

    @writes
    def end_endpoint(self, endpoint: bytes, *, reason: str, limit: int, now: int) -> int:
        rows = (self.book.rows[delivery] for delivery in self.book.of_endpoint[endpoint].ascending())
        unheld = list(islice((row for row in rows if row.holder is None), limit))
        return len(self._end(unheld, state="cancelled", reason=reason, now=now))

    @reads
    def unheld_endpoints(self, after: bytes) -> tuple[Collection[bytes], bytes | None]:
        return {
            row.endpoint for row in self.book.rows.values() if row.holder is None and row.id > after
        }, None

    @reads
    def parked_groups(self) -> list[ParkedGroup]:
        found = []
        for endpoint, reason in sorted(self.book.groups):
            first = self.book.groups[endpoint, reason].ids.first()
            assert first is not None, "a group has rows"
            found.append(ParkedGroup(endpoint, reason, first))
        return found

    @reads
    def next_due(self, lane: Lane) -> int | None:
        first = self.book.ready[lane].first()
        return None if first is None else first[0]

    @reads
    def parked_aged(self, groups: Sequence[AgedGroup], *, limit: int) -> AgedPage:
        page = AgedPage([], [])
        part = max(1, limit // len(groups)) if groups else 0
        for asked in groups:
            ids = self._aged_ids(asked)
            page.rows.extend(self.book.rows[delivery].hand_out(b"") for delivery in ids[:part])
            if len(ids) > part:
                page.goes_on.append(structs.replace(asked, after=ids[part - 1]))
        return page

    def _aged_ids(self, asked: AgedGroup) -> list[bytes]:
        group = self.book.groups.get((asked.endpoint, asked.reason))
        if group is None:
            return []
        aged = takewhile(lambda key: key[0] < asked.born_before, group.ages.ascending())
        return sorted(delivery for _, delivery in aged if delivery > asked.after)

    @reads
    def overdue(self, *, now: int, limit: int) -> list[Delivery]:
        passed = takewhile(lambda key: key[0] <= now, self.book.overdue.ascending())
        return [self.book.copy(self.book.rows[delivery]) for _, delivery in islice(passed, limit)]

    @writes
    def mark_overdue(
        self, deliveries: Sequence[Delivery], notices: Sequence[Notice], *, now: int
    ) -> list[bytes]:
        found = (self.book.rows.get(delivery.id) for delivery in deliveries)
        marked = []
        for row in found:
            if row is not None and row.overdue_at is not None:
                with self.book.moving(row):
                    row.overdue_at = None
                marked.append(row.id)
        self._keep_true(notices, asked=[delivery.id for delivery in deliveries], done=marked)
        return sorted(marked)

    def _end(
        self,
        rows: Iterable[Row],
        *,
        state: str,
        reason: str | None,
        now: int,
        request_headers: Mapping[bytes, bytes] = NONE_KEPT,
    ) -> list[bytes]:
        ended = []
        for row in rows:
            if row.holder is None and row.id in self.book.rows:
                entry = Attempt(
                    delivery=row.id, number=row.attempt, kind="ended", lane=row.lane, started_at=now
                )
                kept = request_headers.get(row.id)
                self.book.finish(row, entry=entry, state=state, reason=reason, now=now, request_headers=kept)
                ended.append(row.id)
        return ended

    def _keep_true(self, notices: Sequence[Notice], *, asked: list[bytes], done: list[bytes]) -> None:
        """Keep the notices, but none about a delivery that was asked for and skipped: it would not be true."""
        skipped = set(asked).difference(done)
        for notice in notices:
            if notice.delivery not in skipped:
                self.book.add_notice(notice)
