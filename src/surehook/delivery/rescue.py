"""The ten-second look: what nobody else would come back to.

Rows that two looks running saw in the book alone are searched for (`lost`), and what is overdue, or was never finalized,
is noted. The work of dead nodes is freed here as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from surehook.core import ids
from surehook.core.model import Delivery, Notice
from surehook.delivery.routes import Directory
from surehook.delivery.settings import EngineSettings
from surehook.delivery.unfinalized import Unfinalized
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy
from surehook.ports.ledger import Burial, Ledger

OVERDUE_ROWS = 500  # overdue deliveries noted in one look


class Rescue:
    """`forgotten` is called where the book goes on holding rows for this node that `in_memory` does not know; `wake`
    starts a claim."""

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
        wake: Callable[[], None],
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
        self._wake = wake
        self._notify = notify
        self._missing: set[bytes] = set()  # at the last look
        self._unfinalized = Unfinalized(ledger=ledger, clock=clock, entropy=entropy, notify=notify)

    async def bury(self, nodes: list[bytes], judged: Mapping[bytes, int]) -> Burial:
        """Free what dead nodes hold."""
        burial = await self._ledger.bury(nodes, now=self._clock.now(), judged=judged)
        if burial.freed:
            self._wake()
        return burial

    async def look(self) -> None:
        """Compare the book with memory, and note what is overdue and what was never finalized."""
        await self._compare()
        await self._note_overdue()
        await self._unfinalized.look()

    async def _compare(self) -> None:
        if await self._ledger.held_count(self._node()) == 0:
            return
        held = await self._ledger.held(self._node(), limit=self._settings.memory_deliveries * 2)
        before, self._missing = self._missing, set(held).difference(self._in_memory())
        if before & self._missing:  # lost, or twice on the way to us or from us
            self._forgotten()

    async def _note_overdue(self) -> None:
        now = self._clock.now()
        late = await self._ledger.overdue(now=now, limit=OVERDUE_ROWS)
        if late:
            notices = [self._overdue_notice(delivery, now) for delivery in late]
            marked = set(await self._ledger.mark_overdue(late, notices, now=now))
            for notice in notices:
                if notice.delivery in marked:  # others look as well, and each is told of once
                    self._notify(notice)

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
