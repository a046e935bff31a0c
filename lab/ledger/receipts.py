"""Receipts, and the deliveries whose end is awaited."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, takewhile

from lab.ledger.hooks import Hooked, reads, writes
from lab.ledger.rows import Receipt
from surehook.core import receipt_state
from surehook.core.model import Notice
from surehook.core.receipt_message import Said
from surehook.ports.receipts import PendingReceipt, ReceiptResult


class Receiving(Hooked):
    @writes
    def apply_receipts(
        self, endpoint: bytes, items: Sequence[Said], *, tenant: str, now: int
    ) -> ReceiptResult:
        known = {(one.delivery, one.event) for one in items if self._had(endpoint, one)}
        rows = {
            one.event: receipt.row
            for one in items
            if (receipt := self.book.receipts.get((one.event, endpoint))) is not None
        }
        changed, reached = receipt_state.joined(rows, items, known)
        for event, row in changed.items():
            self.book.put_receipt((event, endpoint), Receipt(tenant, row, now))
        return ReceiptResult(
            [one.delivery for one in items if (one.delivery, one.event) not in known], reached
        )

    @reads
    def unfinalized(self, *, now: int, limit: int) -> list[PendingReceipt]:
        over = takewhile(lambda key: key[0] <= now, self.book.awaited.ascending())
        return [self._awaited((event, endpoint)) for _, event, endpoint in islice(over, limit)]

    @writes
    def mark_unfinalized(
        self, awaited: Sequence[PendingReceipt], notices: Sequence[Notice], *, now: int
    ) -> list[bytes]:
        marked = []
        for one in awaited:
            key = (one.event, one.endpoint)
            receipt = self.book.receipts.get(key)
            if receipt is not None and self._awaited(key) == one:
                row = receipt.row._replace(finalize_by=None)
                self.book.put_receipt(key, Receipt(receipt.tenant, row, now))
                marked.append(one.delivery)
        for notice in notices:
            if notice.delivery in marked:
                self.book.add_notice(notice)
        return sorted(marked)

    def _had(self, endpoint: bytes, one: Said) -> bool:
        found = self.book.rows.get(one.delivery) or self.book.stories.get(one.delivery)
        return found is not None and (found.event, found.endpoint) == (one.event, endpoint)

    def _awaited(self, key: tuple[bytes, bytes]) -> PendingReceipt:
        receipt = self.book.receipts[key]
        finalize_by = -1 if receipt.row.finalize_by is None else receipt.row.finalize_by
        return PendingReceipt(*key, receipt.tenant, receipt.row.delivery, finalize_by)
