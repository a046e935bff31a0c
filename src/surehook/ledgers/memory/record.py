"""What one window of results means: entries, endings, new places in the schedule, counts, breakers, notices."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from msgspec import structs

from surehook.core import ids
from surehook.core.model import (
    BreakerRow,
    Endpoint,
    EndpointChange,
    EndpointHealth,
    Notice,
    Settled,
)
from surehook.ledgers.memory.hooks import Hooked, reads, writes
from surehook.ledgers.memory.rows import Row
from surehook.ports.ledger import Recorded


class Recording(Hooked):
    @writes
    def record(
        self,
        settled: Sequence[Settled],
        *,
        node: bytes,
        health: Sequence[EndpointHealth],
        breakers: Sequence[BreakerRow],
        notices: Sequence[Notice],
        now: int,
    ) -> Recorded:
        self.book.fence(node)
        lost = []
        committed_before = False
        for one in settled:
            row = self.book.in_hand(one.delivery, node)
            if row is not None:
                self._settle(row, one, now)
            elif self._is_written(one):
                committed_before = True
            else:
                lost.append(one.delivery.id)
        # The whole batch was one transaction: one entry that is there means that all of it is.
        if committed_before:
            return Recorded(lost=lost, changes=self._as_they_are(health))
        for breaker in breakers:
            self._keep_breaker(breaker)
        for notice in notices:
            self.book.add_notice(notice)
        changes = [change for one in health if (change := self._fold(one, now)) is not None]
        return Recorded(lost=lost, changes=changes)

    @reads
    def breakers(self) -> list[BreakerRow]:
        return [self.book.breakers[place] for place in sorted(self.book.breakers)]

    def _settle(self, row: Row, settled: Settled, now: int) -> None:
        entry = settled.entry
        for notice in settled.notices:
            self.book.add_notice(notice)
        if settled.end is not None:
            assert entry is not None, "a delivery ends with an entry"
            self.book.finish(row, entry=entry, state=settled.end, reason=settled.reason, now=now)
            return
        if entry is not None:
            self.book.history[row.id].append(entry)
        with self.book.moving(row):
            row.holder = None
            row.lane, row.attempt, row.due_at = settled.lane, settled.number, settled.due_at
            row.parked, row.parked_at = settled.parked, now
            row.spared = settled.spared
            if entry is not None and entry.kind == "attempt":
                row.outcome, row.unknown, row.freed = entry.outcome, entry.unknown, 0

    def _is_written(self, settled: Settled) -> bool:
        """Whether this was recorded by a commit whose answer was lost, so that the caller asks again."""
        if settled.entry is not None:
            return settled.entry in self.book.history.get(settled.delivery.id, ())
        row = self.book.rows.get(settled.delivery.id)
        return row is not None and (row.holder, row.attempt, row.due_at, row.parked) == (
            None,
            settled.number,
            settled.due_at,
            settled.parked,
        )

    def _keep_breaker(self, breaker: BreakerRow) -> None:
        place = (breaker.tenant, breaker.key)
        if breaker.state == "closed":
            self.book.breakers.pop(place, None)
        else:
            self.book.breakers[place] = breaker

    def _fold(self, health: EndpointHealth, now: int) -> EndpointChange | None:
        """Fold one window into the endpoint; None where nothing changed or the endpoint is gone."""
        before = self.book.endpoints.get(health.endpoint)
        if before is None:
            return None
        after = _folded(before, health, now)
        if after == before:
            return None
        self.book.endpoints[before.id] = after
        if after.status != before.status:
            self.book.version += 1
            if health.status is None:
                self.book.add_notice(_disabled(after, now))
        return _change(after)

    def _as_they_are(self, health: Sequence[EndpointHealth]) -> list[EndpointChange]:
        endpoints = (self.book.endpoints.get(one.endpoint) for one in health)
        return [_change(endpoint) for endpoint in endpoints if endpoint is not None]


def _folded(endpoint: Endpoint, health: EndpointHealth, now: int) -> Endpoint:
    count = (0 if health.succeeded else endpoint.failure_count) + health.failures
    status, reason = endpoint.status, endpoint.reason
    if health.status is not None:
        status, reason = health.status, health.reason
    elif status == "active" and health.limit is not None and count >= health.limit:
        status, reason = "inactive", "consecutive_failures"
    updated_at = endpoint.updated_at if status == endpoint.status else now
    return structs.replace(endpoint, failure_count=count, status=status, reason=reason, updated_at=updated_at)


def _change(endpoint: Endpoint) -> EndpointChange:
    return EndpointChange(endpoint.id, endpoint.failure_count, endpoint.status, endpoint.reason)


def _disabled(endpoint: Endpoint, now: int) -> Notice:
    """The notice of an endpoint that reached its limit; its id follows from what it says, without chance."""
    seed = sha256(b"endpoint.disabled" + endpoint.id + now.to_bytes(8, "big", signed=True)).digest()
    return Notice(
        id=ids.uuid7(now, seed),
        at=now,
        kind="endpoint.disabled",
        tenant=endpoint.tenant,
        endpoint=endpoint.id,
        delivery=None,
        detail=f"inactive after {endpoint.failure_count} consecutive failures",
    )
