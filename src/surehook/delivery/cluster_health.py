"""Decisions that nodes make together: breakers on everybody's calls, one probe among all.

Once a second, and at once when a breaker turns here, a node reports what it counted and learns what all have
found (`ports/health.py`). A turn takes effect here at once; it is written into the ledger, and people are told of
it, when the others have taken it as theirs: of five nodes that open one breaker in the same second, one says so.

Deliveries never wait for any of this. Without an answer each node decides on its own window, is its own probe
and uses all of an endpoint's slots; it keeps its turns to tell them later, but those of breakers without an endpoint.
Only a probe waits for a word: until the store is known to be away, and beside all taking back (`delivery/probe_requests.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Set

from surehook.core.breaker import Breaker
from surehook.delivery.breaker_changes import BreakerChanges
from surehook.delivery.directory import Directory
from surehook.delivery.endpoint_state import Place, UrlBreaker
from surehook.delivery.health_reports import REPORTS_MAX, HealthReports, Reports, turn_of
from surehook.delivery.node import Node
from surehook.delivery.record import Record
from surehook.delivery.slot_parts import SlotParts
from surehook.ports.clock import Clock
from surehook.ports.health import BreakerUpdate, Counted, Health, HealthAway, HealthReply, View
from surehook.ports.telemetry import Telemetry

EXCHANGE_S = 1.0  # between two exchanges, at most
GAP_S = 0.05  # … and at least
# Exchanges: then every breaker that is not closed is told again, for a store that has forgotten.
AGAIN_EVERY = 10


class ClusterHealth:
    """One node's part: it tells what `reports` has gathered, and hears what holds."""

    def __init__(
        self,
        *,
        health: Health,
        clock: Clock,
        telemetry: Telemetry,
        node: Node,
        directory: Directory,
        record: Record,
        reports: HealthReports,
        breakers: BreakerChanges,
        slots: SlotParts,
    ) -> None:
        self._health = health
        self._clock = clock
        self._telemetry = telemetry
        self._node = node
        self._directory = directory
        self._record = record
        self._reports = reports
        self._changes = breakers
        self._slots = slots
        self._since = 0
        self._rounds = 0

    @property
    def is_away(self) -> bool:
        """Tell whether the others cannot be asked."""
        return self._reports.is_away

    async def may_probe(self, breaker: UrlBreaker, longest_s: float) -> bool:
        """Tell whether this node is the probe of all. Where the others cannot be asked, it is, and while it is known that they
        cannot, nobody waits to hear so again: the next exchange finds out when they can."""
        if self.is_away:
            return True
        now = self._clock.now()
        until = now + int(longest_s * 1000)
        try:
            return await self._health.take_probe(
                breaker.tenant, breaker.key, node=self._node.id, until=until, now=now
            )
        except HealthAway as away:
            self._went(str(away))
            return True

    def stop(self) -> None:
        """Write down what nobody has confirmed."""
        for decided in self._reports.take_all_untold():
            self._record.breaker_told(*decided)

    async def close(self) -> None:
        await self._health.close()

    # -- exchanges --------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Exchange for ever."""
        wake = self._reports.wake
        while True:
            await self.exchange()
            try:
                async with asyncio.timeout(EXCHANGE_S):
                    await wake.wait()
                    await self._clock.sleep(GAP_S)
            except TimeoutError:
                pass
            wake.clear()

    async def exchange(self) -> None:
        """Report and learn once."""
        breakers = self._reporting()
        counted = [self._counted(breaker) for breaker in breakers]
        failing = {
            (report.tenant, report.key)
            for report in counted
            if any(failures for _, _, failures in report.buckets)
        }
        reports = self._reports.take()
        turns = reports.turns()
        if self._rounds % AGAIN_EVERY == 0:
            turns += self._again(reports.turned.keys() | reports.newer.keys())
        self._rounds += 1
        node = self._node.id
        try:
            word = await self._health.exchange(
                node=node,
                counted=counted,
                updates=turns,
                busy=self._slots.busy(),
                since=self._since,
                now=self._clock.now(),
            )
        except HealthAway as away:
            self._went(str(away))
            for breaker in breakers:
                breaker.alone()
            self._reports.put_back(reports, self._directory.breakers)
            self.stop()
            return
        if self._reports.came_back():
            self._telemetry.fact("health.back")
        self._since = word.since
        self._learn(word, reports, failing, node.hex())

    def _reporting(self) -> list[Breaker]:
        touched = self._directory.breakers.touched
        taken, touched[:] = touched[:REPORTS_MAX], touched[REPORTS_MAX:]
        for breaker in taken:
            if breaker.policy is None:  # it has none any more: what was counted means nothing
                breaker.alone()
        return [breaker for breaker in taken if breaker.policy is not None]

    @staticmethod
    def _counted(breaker: Breaker) -> Counted:
        assert breaker.policy is not None
        return Counted(breaker.tenant, breaker.key, int(breaker.policy.window * 1000), breaker.report())

    def _again(self, turned: Set[Place]) -> list[BreakerUpdate]:
        open_ones = [breaker for breaker in self._directory.breakers.unclosed if breaker.place not in turned]
        first = self._rounds // AGAIN_EVERY * REPORTS_MAX % max(1, len(open_ones))  # others the next time
        return [turn_of(breaker, again=True) for breaker in open_ones[first : first + REPORTS_MAX]]

    # -- what the others say ----------------------------------------------------------------------------

    def _learn(self, word: HealthReply, reports: Reports, failing: set[Place], author: str) -> None:
        now = self._clock.now()
        self._directory.breakers.forget_heard(now)
        for view in word.views:
            place = (view.tenant, view.key)
            if self._reports.has_turned(place):
                continue  # it turned again meanwhile: the next exchange settles it
            self._changes.hear(view)
            if self._reports.has_turned(place):
                continue  # what was heard has turned it once more
            if place in reports.turned:  # its generation is everybody's now
                self._settle(place, view, author)
            breaker = self._directory.breakers.get(place)
            if breaker is None:
                continue
            if 0 < view.generation < breaker.generation:
                self._reports.know_better(turn_of(breaker, again=True))
            if view.calls is None or view.failures is None:
                continue
            if breaker.learn(view.calls, view.failures, now, failed=place in failing) is not None:
                self._opened_together(breaker)
        self._slots.divide(word.sharers, now)

    def _settle(self, place: Place, view: View, author: str) -> None:
        """Our turn is everybody's, or another node was faster."""
        decided = self._reports.take_untold(place)
        if decided is not None and view.author == author:
            self._record.breaker_told(*decided)

    def _opened_together(self, breaker: UrlBreaker) -> None:
        """No single node's calls would have opened it."""
        self._reports.on_breaker_change(breaker, "opened", breaker.oldest.endpoint.id)
        self._changes.heard(breaker)

    def _went(self, why: str) -> None:
        if self._reports.went_away():
            self._telemetry.fact("health.away", error=why)
        self._slots.whole()
