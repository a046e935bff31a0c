"""What this node holds and what is late: looks that nobody else would come back to.

Rows that two looks running saw in the ledger alone are searched for (`lost`), and what is overdue is noted.
"""

from __future__ import annotations

from collections.abc import Callable

from surehook.core import ids
from surehook.core.model import Delivery, Notice
from surehook.delivery.routes import Directory
from surehook.delivery.settings import EngineSettings
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy
from surehook.ports.ledger import Ledger

OVERDUE_ROWS = 500  # overdue deliveries noted in one transaction
REST_S = 0.05  # between two of them: accepts go first


class Rescue:
    """`forgotten` is called where the book goes on holding rows for this node that `in_memory` does not know."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: Clock,
        entropy: Entropy,
        settings: EngineSettings,
        directory: Directory,
        node: Callable[[], bytes],
        in_memory: Callable[[], set[bytes]],
        forgotten: Callable[[], None],
        notify: Callable[[Notice], None],
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._entropy = entropy
        self._settings = settings
        self._directory = directory
        self._node = node
        self._in_memory = in_memory
        self._forgotten = forgotten
        self._notify = notify
        self._missing: set[bytes] = set()  # at the last look

    async def compare(self) -> None:
        """Compare what the ledger holds for this node with memory."""
        if await self._ledger.held_count(self._node()) == 0:
            return
        held = await self._ledger.held(self._node(), limit=self._settings.memory_deliveries * 2)
        before, self._missing = self._missing, set(held).difference(self._in_memory())
        if before & self._missing:  # lost, or twice on the way to us or from us
            self._forgotten()

    async def note_overdue(self) -> None:
        """Note everything that is overdue now."""
        full = True
        while full:
            now = self._clock.now()
            late = await self._ledger.overdue(now=now, limit=OVERDUE_ROWS)
            full = len(late) == OVERDUE_ROWS
            notices = [self._overdue_notice(delivery, now) for delivery in late]
            marked = set(await self._ledger.mark_overdue(late, notices, now=now)) if late else set()
            for notice in notices:
                if notice.delivery in marked:  # others look as well, and each is told of once
                    self._notify(notice)
            await self._clock.sleep(REST_S)

    def _overdue_notice(self, delivery: Delivery, now: int) -> Notice:
        return Notice(
            id=ids.uuid7(now, self._entropy.bits(10)),
            at=now,
            kind="delivery.overdue",
            tenant=delivery.tenant,
            endpoint=delivery.endpoint,
            delivery=delivery.id,
            detail=f"undelivered {(now - delivery.born_at) // 1000} s after it was accepted",
        )
