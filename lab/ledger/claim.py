"""The way out: leasing rows, and handing them back unsent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice, takewhile

from lab.ledger.hooks import Hooked, writes
from lab.ledger.rows import Row
from surehook.core.model import Delivery, Lane
from surehook.ledgers.passes import FRESH_MS
from surehook.ports.ledger import ANY_SIZE, ClaimedIds, Skip


class Claiming(Hooked):
    @writes
    def claim(
        self, lane: Lane, *, node: bytes, limit: int, due_by: int, now: int, size: int = ANY_SIZE
    ) -> list[Delivery]:
        self.book.fence(node)
        chosen = list(islice(self.up_to(size, self._due(lane, due_by)), limit))
        return [self.book.lease(row, node) for row in chosen]

    @writes
    def claim_others(
        self,
        lane: Lane,
        *,
        node: bytes,
        limit: int,
        due_by: int,
        now: int,
        skip: Skip,
        size: int = ANY_SIZE,
        fresh: bool = False,
    ) -> list[Delivery]:
        self.book.fence(node)
        others = (
            row
            for row in self._due(lane, due_by)
            if row.endpoint not in skip.endpoints and row.tenant not in skip.tenants
            if not fresh or row.due_at > now - FRESH_MS
        )
        return [self.book.lease(row, node) for row in list(islice(self.up_to(size, others), limit))]

    @writes
    def claim_ids(self, ids: Sequence[bytes], *, node: bytes, now: int, size: int = ANY_SIZE) -> ClaimedIds:
        self.book.fence(node)
        asked = list(dict.fromkeys(ids))
        found = (self.book.rows.get(delivery) for delivery in asked)
        free = [
            row
            for row in found
            if row is not None and row.holder is None and row.parked is None and row.due_at <= now
        ]
        chosen = list(self.up_to(size, free))
        rest = asked[asked.index(free[len(chosen)].id) :] if len(chosen) < len(free) else []
        return ClaimedIds([self.book.lease(row, node) for row in chosen], rest)

    @writes
    def unpark(
        self,
        endpoint: bytes,
        reasons: Sequence[str],
        *,
        node: bytes,
        limit: int,
        now: int,
        size: int = ANY_SIZE,
        restart: bool = False,
    ) -> list[Delivery]:
        self.book.fence(node)
        groups = [self.book.groups.get((endpoint, reason)) for reason in dict.fromkeys(reasons)]
        oldest_first = merge(*(group.ids.ascending() for group in groups if group is not None))
        leased = []
        rows = (self.book.rows[delivery] for delivery in oldest_first)
        for row in list(islice(self.up_to(size, rows), limit)):
            with self.book.moving(row):
                row.unpark(now=now)
                row.holder = node
                if restart:
                    row.born_at = row.due_at = now
                    row.stood_ms = 0
                    row.spared = row.attempt - 1
            leased.append(self.book.copy(row))
        return leased

    def _due(self, lane: Lane, due_by: int) -> Iterator[Row]:
        due = takewhile(lambda key: key[0] <= due_by, self.book.ready[lane].ascending())
        return (self.book.rows[row] for _, row in due)

    def up_to(self, size: int, rows: Iterable[Row]) -> Iterator[Row]:
        """Rows until their bodies reach `size` bytes, each event's counted once."""
        counted: set[bytes] = set()
        for row in rows:
            if size <= 0:
                return
            if row.event not in counted:
                counted.add(row.event)
                size -= len(self.book.events[row.event].body)
            yield row

    @writes
    def park(self, deliveries: Sequence[Delivery], reason: str, *, node: bytes, now: int) -> None:
        self.book.fence(node)
        for delivery in deliveries:
            row = self.book.in_hand(delivery, node)
            if row is not None:
                with self.book.moving(row):
                    row.holder = None
                    row.parked, row.parked_at = reason, now

    @writes
    def release(self, deliveries: Sequence[Delivery], *, node: bytes, now: int) -> None:
        self.book.fence(node)
        for delivery in deliveries:
            row = self.book.in_hand(delivery, node)
            if row is not None:
                with self.book.moving(row):
                    row.holder = None
