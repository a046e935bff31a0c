"""Work that memory does not hold: retries, what a dead node left, what other processes accepted.

Rows are leased in batches, a little before they are due: as many as slots can use soon and never more than
memory has room for, so that one worker does not hoard what another could send. A batch begins small and
doubles while the ledger gives as much as was asked. The next rows are claimed while the last are being sent:
when the queue has run down, a record window says so, and where memory was full, what was parked.

Rows come in the order in which they are due, so that everybody would wait behind one endpoint's fifty thousand. Whoever
has enough in memory is therefore passed over, endpoint or tenant, until that has run down; what the others have is
claimed past it.

While a tenant with very many endpoints has use for all that claims bring, one follows another until it has enough. A hint
does not wait for that: between two of them there is a look past such a crowd, at what has just fallen due. The next one is
the crowd's again, so it waits for one look at most; and it is no sooner than after a hint that came too late.

What calls for a look stands in `claim_looks.py`, what becomes of rows that come in `arrivals.py`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from surehook.core.errors import LedgerUnavailable
from surehook.core.model import Delivery, Lane
from surehook.delivery.arrivals import Arrivals
from surehook.delivery.claim_looks import (
    BATCH_LEAST,
    BESIDE_FIRST_S,
    CLAIM_BYTES,
    QUIET_FIRST_S,
    QUIET_MOST_S,
    ClaimLooks,
    Look,
)
from surehook.delivery.directory import Directory
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.handoff.handoff import Handoff
from surehook.delivery.holdings import Holdings
from surehook.delivery.node import Node
from surehook.delivery.pump import Pump
from surehook.delivery.settings import EngineSettings
from surehook.delivery.tenant_activity import TenantActivity
from surehook.ports.clock import Clock
from surehook.ports.ledger import Ledger, Skip, is_full

IN_OTHER_HANDS_S = 0.02  # a row that is due and was not given is being leased by somebody else
BESIDE_MOST_S = 0.1  # between looks past those who have enough, as they find nothing
BACKLOG_MS = 100  # a full claim of rows that have been due for so long is of a backlog


class Claim:
    """The claiming loop over the lanes that this node delivers."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: Clock,
        settings: EngineSettings,
        directory: Directory,
        node: Node,
        dispatch: Dispatch,
        pump: Pump,
        looks: ClaimLooks,
        arrivals: Arrivals,
        holdings: Holdings,
        activity: TenantActivity,
        handoff: Handoff | None,
    ) -> None:
        """`handoff`: a broker that brings the work, where there is one."""
        self._ledger = ledger
        self._clock = clock
        self._settings = settings
        self._directory = directory
        self._node = node
        self._dispatch = dispatch
        self._pump = pump
        self._looks = looks
        self._arrivals = arrivals
        self._holdings = holdings
        self._activity = activity
        self._handoff = handoff
        self._stopped = False
        self._poll_at = 0.0
        self._ahead_ms = int(settings.claim_ahead_s * 1000)

    def stop(self) -> None:
        """End the loop once the call in hand is done."""
        self._stopped = True
        self._looks.called.set()

    async def run(self) -> None:
        """Claim until it is stopped."""
        while not self._stopped:
            full = False
            if self._may_claim():
                try:
                    full = await self._round()
                except LedgerUnavailable:
                    self._looks.wake()  # look again as soon as it answers
                    raise
            if not full and not self._stopped:
                await self._rest()

    async def _round(self) -> bool:
        """Look at every lane that calls for it; True where one gave as much as was asked (there may be more)."""
        full = False
        boot = self._clock.boot()
        polls = boot >= self._poll_at
        if polls:
            self._poll_at = boot + self._settings.poll_s
        for lane, look in self._looks.of_lane.items():
            due = look.due is not None and look.due - self._ahead_ms <= self._clock.now()
            called = look.at is not None and look.at <= boot
            if polls or due or called:
                full = await self._look(lane, look, ask_due=polls or due or not look.hinted) or full
        self._pump.pump()
        return full

    async def _look(self, lane: Lane, look: Look, *, ask_due: bool) -> bool:
        hinted, look.hinted, look.at = look.hinted, False, None
        memory = self._dispatch.memory
        skip, wanted = self._needs(lane, look)
        limit = min(wanted, look.batch, self._settings.claim_rows, memory.room())
        if limit <= 0:
            look.starved, look.due = True, None
            return False
        size = min(memory.room_bytes(), CLAIM_BYTES)
        node, now = self._node.id, self._clock.now()
        boot = self._clock.boot()
        look.for_hint = skip is None and look.is_behind_crowd(boot) and not look.for_hint
        if look.for_hint:
            skip = Skip(tenants=look.crowd)
        told, look.hint_at = look.hint_at, None
        fresh = look.for_hint or boot < look.far_at
        asked: dict[str, Any] = {
            "node": node,
            "limit": limit,
            "due_by": now + self._ahead_ms,
            "now": now,
            "size": size,
        }
        with self._holdings.leasing():
            if skip is None:
                rows = await self._ledger.claim(lane, **asked)
            else:
                rows = await self._ledger.claim_others(lane, skip=skip, fresh=fresh, **asked)
            if not self._node.is_still(node):
                return False  # evicted before the answer came: they are free again
            self._arrivals.take(rows)
        self._tell_of_retries(rows)
        if rows and (skip is not None or not look.crowd):  # the crowd's rows say nothing about hints
            look.quiet_s = 0.0
        elif not rows and (hinted or look.for_hint):
            look.quiet_s = min(max(QUIET_FIRST_S, look.quiet_s * 2), QUIET_MOST_S)
            look.empty_at = self._clock.boot()
        full = is_full(rows, limit=limit, size=size)
        if look.for_hint:  # the crowd's turn, at once
            look.at = self._clock.boot()
            if full:
                look.hint_at = look.at
            return True
        if skip is None:
            look.crowd = self._crowd(rows, now) if full else ()
            if full and look.hint_at is None:
                look.hint_at = told  # its rows may lie behind these
        if full:
            look.batch = min(self._settings.claim_rows, look.batch * 2)
            look.at = self._clock.boot()
            return True
        look.batch = BATCH_LEAST
        near = now + self._ahead_ms
        if skip is not None:
            look.starved = True
            boot = self._clock.boot()
            if rows:
                look.beside_s = BESIDE_FIRST_S
            elif not fresh:
                look.beside_s = min(look.beside_s * 2, BESIDE_MOST_S)
                look.far_at = boot + look.beside_s
            look.by(max(look.far_at, boot) if fresh and not rows else boot + look.beside_s)
        elif ask_due:
            look.due = await self._ledger.next_due(lane)
            if look.due is not None and look.due <= near:
                look.due = None
                look.by(self._clock.boot() + IN_OTHER_HANDS_S)
        if look.due is not None and look.due <= near:
            look.due = None
        return False

    def _needs(self, lane: Lane, look: Look) -> tuple[Skip | None, int]:
        """Whose rows to pass over (None: nobody's), and how many of the others the lane's slots can use soon.

        A tenant has enough where what it has in memory is its part of the slots among the tenants that have something
        there, or all that it may hold; an endpoint where its queue is as long as taking back from parking makes it.
        """
        free = self._looks.free(lane)
        waiting = self._dispatch.startable(lane, of_all=free)
        tenants: set[str] = set()
        if not self._dispatch.memory.is_lone:
            tenants.update(name for name, count in waiting.items() if count * len(waiting) >= free)
            tenants.update(self._dispatch.memory.full_tenants())
        for route in [route for route in look.full if len(route.queues[lane]) < route.pull // 2]:
            del look.full[route]
        wanted = free - sum(count for name, count in waiting.items() if name not in tenants)
        if not tenants and not look.full and not self._looks.unknown:
            return None, wanted
        endpoints = (*(route.endpoint.id for route in look.full), *sorted(self._looks.unknown))
        return Skip(endpoints=endpoints, tenants=tuple(sorted(tenants))), wanted

    def _crowd(self, rows: list[Delivery], now: int) -> tuple[str, ...]:
        """The tenants that most of a full claim's rows are of, where there are others and the rows are of a backlog."""
        if self._dispatch.memory.is_lone or not rows or rows[-1].due_at > now - BACKLOG_MS:
            return ()
        counts = Counter(row.tenant for row in rows)
        return tuple(sorted(name for name, count in counts.items() if count * len(counts) >= len(rows)))

    def _tell_of_retries(self, rows: list[Delivery]) -> None:
        if len(self._directory.tenants) > 1:
            now = asyncio.get_running_loop().time()
            for tenant, count in Counter(row.tenant for row in rows if row.attempt > 1).items():
                self._activity.tried_again(tenant, count, now)

    def _may_claim(self) -> bool:
        if self._handoff is not None and not self._handoff.may_claim():
            return False  # the broker brings the work
        return self._looks.has_room()

    async def _rest(self) -> None:
        """Until the earliest thing that calls for a look."""
        boot = self._clock.boot()
        wait_s = self._poll_at - boot
        for look in self._looks.of_lane.values():
            if look.at is not None:
                wait_s = min(wait_s, look.at - boot)
            if look.due is not None:
                wait_s = min(wait_s, (look.due - self._ahead_ms - self._clock.now()) / 1000)
        if not self._may_claim():
            wait_s = self._settings.poll_s
        self._looks.bar(not self._looks.has_room())
        try:
            async with asyncio.timeout(max(0.001, wait_s)):
                await self._looks.called.wait()
        except TimeoutError:
            pass
        self._looks.called.clear()
