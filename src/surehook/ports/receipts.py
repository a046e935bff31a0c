"""The receipts that receivers send later: one row per event and endpoint, off the hot path.

The key is (event, endpoint), not the delivery: a receiver speaks of the event, and the receipts of an earlier delivery
answer a replay as well. `CommitUnknown` is never raised: all three calls are safe to run again, and the ledger does so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from surehook.core.model import Notice
from surehook.core.receipt import Stage
from surehook.core.receipt_message import Said


class ReceiptResult(Struct):
    """The result of a message of receipts.

    unknown  ids of deliveries that this endpoint never had, or that are past their retention
    reached  each stage that an event newly reached
    """

    unknown: list[bytes]
    reached: list[Stage]


class PendingReceipt(Struct, frozen=True):
    """A delivered event whose receiver has told no end by `finalize_by` (Unix milliseconds)."""

    event: bytes
    endpoint: bytes
    tenant: str
    delivery: bytes
    finalize_by: int


class ReceiptLedger(Protocol):
    async def apply_receipts(
        self, endpoint: bytes, items: Sequence[Said], *, tenant: str, now: int
    ) -> ReceiptResult:
        """Join receipts to the state of the events that this endpoint's deliveries brought, in one transaction.

        A state is never lowered. An end (`receipt.ENDS`) ends the wait that `Settled.finalize_by` began.
        """
        ...

    async def unfinalized(self, *, now: int, limit: int) -> list[PendingReceipt]:
        """List waits that are over, the oldest first."""
        ...

    async def mark_unfinalized(
        self, awaited: Sequence[PendingReceipt], notices: Sequence[Notice], *, now: int
    ) -> list[bytes]:
        """End these waits and write the notices, in one transaction. Return the deliveries whose wait this call ended.

        Waits that another process or a receipt has ended are skipped, and so are their notices.
        """
        ...
