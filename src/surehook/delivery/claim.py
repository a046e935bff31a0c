"""Work that memory does not hold: retries, what a dead node left, what was over the memory bound.

Rows are leased in batches, a little before they are due, and never more than memory has room for. The loop
sleeps until the earliest retry it knows of, at most one poll: what other processes leave is found by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from surehook.core.errors import LedgerBroken, LedgerUnavailable, NodeBuried
from surehook.core.model import FIRST, RETRY, Delivery
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.routes import Directory, Route
from surehook.delivery.settings import EngineSettings
from surehook.delivery.timers import Timers
from surehook.ports.clock import Clock
from surehook.ports.ledger import Ledger


class Claim:
    """The claiming loop. `orphan` is told of rows whose endpoint memory does not know."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: Clock,
        settings: EngineSettings,
        directory: Directory,
        dispatch: Dispatch,
        node: Callable[[], bytes],
        park: Callable[[Route, Delivery, str], None],
        orphan: Callable[[list[Delivery]], None],
        hand_back: Callable[[list[Delivery]], None],
        may_claim: Callable[[], bool],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._settings = settings
        self._directory = directory
        self._dispatch = dispatch
        self._node = node
        self._park = park
        self._orphan = orphan
        self._hand_back = hand_back
        self._may_claim = may_claim
        self._fail = fail
        self._wake = asyncio.Event()
        self._stopped = False
        self._next_due: int | None = None
        self.timers = Timers(clock, self._due)

    def wake(self) -> None:
        """There may be due work in the ledger: look now."""
        self._wake.set()

    def hint(self, due_at: int) -> None:
        """A retry was written for this instant."""
        if self._next_due is None or due_at < self._next_due:
            self._next_due = due_at
            if due_at - self._clock.now() < self._settings.poll_s * 1000:
                self._wake.set()

    def stop(self) -> None:
        """End the loop once the call in hand is done."""
        self._stopped = True
        self._wake.set()

    async def run(self) -> None:
        """Claim for ever. Ledger trouble is waited out: the next look tries again."""
        while not self._stopped:
            full = False
            if self._may_claim():
                try:
                    full = await self._look()
                except NodeBuried as error:
                    self._fail(error)
                except LedgerBroken as error:
                    self._fail(error)
                    return
                except LedgerUnavailable:
                    self._next_due = None
            if not full and not self._stopped:
                await self._rest()

    async def _look(self) -> bool:
        """One round over both lanes; True where a lane gave as much as was asked (there may be more)."""
        full = False
        now = self._clock.now()
        ahead = int(self._settings.claim_ahead_s * 1000)
        soonest: int | None = None
        for lane in (RETRY, FIRST):
            limit = min(self._settings.claim_rows, self._dispatch.room())
            if limit == 0:
                continue
            rows = await self._ledger.claim(lane, node=self._node(), limit=limit, due_by=now + ahead, now=now)
            self.take(rows)
            if len(rows) == limit:
                full = True
                continue
            due = await self._ledger.next_due(lane)
            if due is not None and (soonest is None or due < soonest):
                soonest = due
        if not full:
            self._next_due = soonest
        self._dispatch.pump()
        return full

    def take(self, rows: list[Delivery]) -> None:
        """Leased rows come into memory: queued, timed, or parked where their endpoint cannot take them now."""
        orphans: list[Delivery] = []
        later: list[Delivery] = []
        now = self._clock.now()
        soon = now + 2 * int(self._settings.claim_ahead_s * 1000)
        for delivery in rows:
            route = self._directory.routes.get(delivery.endpoint)
            if route is None:
                orphans.append(delivery)
                continue
            if delivery.due_at > soon:  # taken out of parking, and its time is far: the book keeps it
                later.append(delivery)
                continue
            has_share = self._dispatch.has_share(route)
            self._dispatch.hold(route, len(delivery.body))
            reason = route.takes or (None if has_share else "share")
            if reason is not None:
                self._park(route, delivery, reason)
            elif delivery.due_at > now:
                self.timers.add(route, delivery)
            else:
                self._dispatch.push(route, delivery)
        if orphans:
            self._orphan(orphans)
        if later:
            self._hand_back(later)

    def _due(self, route: Route, delivery: Delivery) -> None:
        self._dispatch.push(route, delivery)
        self._dispatch.pump()

    async def _rest(self) -> None:
        wait_s = self._settings.poll_s
        if self._next_due is not None:
            ahead_s = self._settings.claim_ahead_s
            wait_s = min(wait_s, max(0.005, (self._next_due - self._clock.now()) / 1000 - ahead_s))
        try:
            async with asyncio.timeout(wait_s):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.clear()
