"""Recording a window of results: history, endings, new due times, failure counts, breakers, notices."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from lab.ledger.hooks import Hooked, reads, writes
from lab.ledger.rows import Receipt, Row
from surehook.core import receipt_state
from surehook.core.endpoint_health import after_window, applies_to, disabled_notice
from surehook.core.model import (
    BreakerRow,
    Endpoint,
    EndpointHealth,
    Notice,
    RecordedEndpoint,
    Settled,
)
from surehook.ledgers import changes as notes
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
        self._wait([one for one in settled if one.delivery.id not in lost], now)
        for notice in notices:
            self.book.add_notice(notice)
        changes = [change for one in health if (change := self._fold(one, now)) is not None]
        return Recorded(lost=lost, changes=changes)

    @reads
    def breakers(self, asked: Sequence[tuple[str, str]] = ()) -> list[BreakerRow]:
        closings = [self.book.closings[place] for place in asked if place in self.book.closings]
        return [self.book.breakers[place] for place in sorted(self.book.breakers)] + closings

    def _settle(self, row: Row, settled: Settled, now: int) -> None:
        entry = settled.entry
        for notice in settled.notices:
            self.book.add_notice(notice)
        if settled.end is not None:
            assert entry is not None, "a delivery ends with an entry"
            self.book.finish(
                row, entry=entry, state=settled.end, reason=settled.reason, now=now,
                request_headers=settled.request_headers,
            )  # fmt: skip
            return
        if entry is not None:
            self.book.history[row.id].append(entry)
        with self.book.moving(row):
            row.holder = None
            row.lane, row.attempt, row.due_at = settled.lane, settled.number, settled.due_at
            row.parked, row.parked_at = settled.parked, now
            row.spared = settled.spared
            if entry is not None:
                row.outcome, row.unknown, row.freed = entry.outcome, entry.unknown, 0

    def _wait(self, settled: Sequence[Settled], now: int) -> None:
        for wait in receipt_state.waits_of(settled):
            key = (wait.event, wait.endpoint)
            receipt = self.book.receipts.get(key)
            if receipt is None or receipt_state.starts_wait(receipt.row, wait.delivery):
                word = None if receipt is None else receipt.row.state
                row = receipt_state.ReceiptRow(wait.delivery, word, wait.finalize_by)
                self.book.put_receipt(key, Receipt(wait.tenant, row, now))

    def _is_written(self, settled: Settled) -> bool:
        """Return True if this was recorded by a commit whose answer was lost, so that the caller asks again.

        A step without entry leaves nothing to know it by; run again, it is merely lost.
        """
        return settled.entry is not None and settled.entry in self.book.history.get(settled.delivery.id, ())

    def _keep_breaker(self, breaker: BreakerRow) -> None:
        place = (breaker.tenant, breaker.key)
        known, closing = self.book.breakers.get(place), self.book.closings.get(place)
        if breaker.state == "closed":
            if closing is None or closing.generation < breaker.generation:
                self.book.closings[place] = structs.replace(
                    breaker, reason="", opened_at=0, probe_at=0, failures=0, calls=0
                )
            if known is not None and known.generation <= breaker.generation:
                del self.book.breakers[place]
        elif (closing is None or closing.generation < breaker.generation) and (
            known is None or known.generation <= breaker.generation
        ):
            self.book.breakers[place] = breaker

    def _fold(self, health: EndpointHealth, now: int) -> RecordedEndpoint | None:
        """Fold one window into the endpoint; None where nothing changed or the endpoint is gone."""
        before = self.book.endpoints.get(health.endpoint)
        if before is None or not applies_to(health, before.url):
            return None
        change = after_window(health, before.failure_count, before.status, before.reason)
        if change == _change(before):
            return None
        turned = change.status != before.status
        self.book.endpoints[before.id] = structs.replace(
            before,
            failure_count=change.failure_count,
            status=change.status,
            reason=change.reason,
            updated_at=now if turned else before.updated_at,
        )
        if turned:
            self.book.note_change(notes.ENDPOINT, before.id)
            if health.status is None:
                self.book.add_notice(disabled_notice(change, tenant=before.tenant, now=now))
        return change

    def _as_they_are(self, health: Sequence[EndpointHealth]) -> list[RecordedEndpoint]:
        endpoints = (self.book.endpoints.get(one.endpoint) for one in health)
        return [_change(endpoint) for endpoint in endpoints if endpoint is not None]


def _change(endpoint: Endpoint) -> RecordedEndpoint:
    return RecordedEndpoint(endpoint.id, endpoint.failure_count, endpoint.status, endpoint.reason)
