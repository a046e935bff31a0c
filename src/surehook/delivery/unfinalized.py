"""Delivered, and then silence: a notice where a receiver tells no end in the time that its endpoint gives it.

The waits are few rows under an index of their own, begun in the transaction that records the delivery; endpoints that do
not ask have none. A look reads those that are over, some at a time, and tells of each once, whichever process looks.
"""

from __future__ import annotations

from surehook.core import ids
from surehook.core.model import Notice
from surehook.delivery.notices import Notices
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy
from surehook.ports.receipts import PendingReceipt, ReceiptLedger

KIND = "delivery.unfinalized"
ROWS = 500  # told of in one transaction
REST_S = 0.05  # between two of them: accepts go first


class Unfinalized:
    """The look."""

    def __init__(self, *, ledger: ReceiptLedger, clock: Clock, entropy: Entropy, notices: Notices) -> None:
        self._ledger = ledger
        self._clock = clock
        self._entropy = entropy
        self._notices = notices

    async def look(self) -> None:
        """Tell of every wait that is over now."""
        full = True
        while full:
            now = self._clock.now()
            late = await self._ledger.unfinalized(now=now, limit=ROWS)
            full = len(late) == ROWS
            notices = [self._notice(one, now) for one in late]
            marked = set(await self._ledger.mark_unfinalized(late, notices, now=now)) if late else set()
            for notice in notices:
                if notice.delivery in marked:  # others look as well, and each is told of once
                    self._notices.tell(notice)
            await self._clock.sleep(REST_S)

    def _notice(self, late: PendingReceipt, now: int) -> Notice:
        return Notice(
            id=ids.uuid7(now, self._entropy.bits(10)),
            at=now,
            kind=KIND,
            tenant=late.tenant,
            endpoint=late.endpoint,
            delivery=late.delivery,
            detail="delivered, and its receiver has not said in time that it is finalized",
        )
