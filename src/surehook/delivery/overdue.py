"""Notices of overdue deliveries, one each: a look that nobody else would come back to."""

from __future__ import annotations

from surehook.core import ids
from surehook.core.model import Delivery, Notice
from surehook.delivery.notices import Notices
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy
from surehook.ports.ledger import Ledger

OVERDUE_ROWS = 500  # overdue deliveries noted in one transaction
REST_S = 0.05  # between two of them: accepts go first


class Overdue:
    """The look."""

    def __init__(self, *, ledger: Ledger, clock: Clock, entropy: Entropy, notices: Notices) -> None:
        self._ledger = ledger
        self._clock = clock
        self._entropy = entropy
        self._notices = notices

    async def look(self) -> None:
        """Note everything that is overdue now."""
        full = True
        while full:
            now = self._clock.now()
            late = await self._ledger.overdue(now=now, limit=OVERDUE_ROWS)
            full = len(late) == OVERDUE_ROWS
            notices = [self._notice(delivery, now) for delivery in late]
            marked = set(await self._ledger.mark_overdue(late, notices, now=now)) if late else set()
            for notice in notices:
                if notice.delivery in marked:  # others look as well, and each is told of once
                    self._notices.tell(notice)
            await self._clock.sleep(REST_S)

    def _notice(self, delivery: Delivery, now: int) -> Notice:
        return Notice(
            id=ids.uuid7(now, self._entropy.bits(10)),
            at=now,
            kind="delivery.overdue",
            tenant=delivery.tenant,
            endpoint=delivery.endpoint,
            delivery=delivery.id,
            detail=f"undelivered {(now - delivery.born_at) // 1000} s after it was accepted",
        )
