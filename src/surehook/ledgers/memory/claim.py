"""The way out: leasing rows, and handing them back unsent."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import merge
from itertools import islice, takewhile

from surehook.core.model import Delivery, Lane
from surehook.ledgers.memory.hooks import Hooked, writes


class Claiming(Hooked):
    @writes
    def claim(self, lane: Lane, *, node: bytes, limit: int, due_by: int, now: int) -> list[Delivery]:
        self.book.fence(node)
        due = takewhile(lambda key: key[0] <= due_by, self.book.ready[lane].ascending())
        return [self.book.lease(self.book.rows[row], node) for _, row in list(islice(due, limit))]

    @writes
    def claim_ids(self, ids: Sequence[bytes], *, node: bytes, now: int) -> list[Delivery]:
        self.book.fence(node)
        leased = []
        for delivery in ids:
            row = self.book.rows.get(delivery)
            if row is None or row.holder is not None or row.parked is not None or row.due_at > now:
                continue
            leased.append(self.book.lease(row, node))
        return leased

    @writes
    def unpark(
        self,
        endpoint: bytes,
        reasons: Sequence[str],
        *,
        node: bytes,
        limit: int,
        now: int,
        restart: bool = False,
    ) -> list[Delivery]:
        self.book.fence(node)
        groups = [self.book.groups.get((endpoint, reason)) for reason in dict.fromkeys(reasons)]
        oldest_first = merge(*(group.ids.ascending() for group in groups if group is not None))
        leased = []
        for row in [self.book.rows[delivery] for delivery in islice(oldest_first, limit)]:
            with self.book.moving(row):
                row.unpark(now=now)
                row.holder = node
                if restart:
                    row.born_at = row.due_at = now
                    row.stood_ms = 0
                    row.spared = row.attempt - 1
            leased.append(self.book.copy(row))
        return leased

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
