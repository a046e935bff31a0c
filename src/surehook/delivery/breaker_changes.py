"""Consequences of a breaker that opens or closes, by whomever: a call of ours, other nodes, the configuration, a person.

A change of ours goes into the ledger, by way of the other nodes where all decide together. Endpoints that share the breaker
park their queues, or may take back. What the configuration closes every node closes that knew it, as it reads the change; to
close twice is to close once.

What others say of a breaker comes with each exchange where nodes can ask what they share (`cluster_health.py`), else from the
ledger, at each look: every opening, reopening and closing is written there with the results that caused it. Both say the
same: a state and the generation of the decision, and `Breaker.hear` says which of two is newer. A node that delivers only the
first lane never probes: this is how it learns that a probe went well.
"""

from __future__ import annotations

from collections.abc import Sequence

from surehook.core.breaker import Change
from surehook.core.model import BreakerRow
from surehook.delivery.directory import Directory
from surehook.delivery.endpoint_state import Place, UrlBreaker
from surehook.delivery.health_reports import HealthReports, of_row
from surehook.delivery.parking import Parking
from surehook.delivery.peers import Peers
from surehook.delivery.record import Record
from surehook.delivery.refill import Refill
from surehook.ports.clock import Clock
from surehook.ports.health import View
from surehook.ports.ledger import Ledger


class BreakerChanges:
    """`reports` is None where each node decides alone."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: Clock,
        directory: Directory,
        refill: Refill,
        parking: Parking,
        record: Record,
        peers: Peers,
        reports: HealthReports | None,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._breakers = directory.breakers
        self._refill = refill
        self._parking = parking
        self._record = record
        self._peers = peers
        self._reports = reports
        # Open ones by which the ledger is behind, by the last look, and the generation that it had of each
        self._behind: dict[Place, int] = {}

    # -- by calls of ours, and by nobody's ----------------------------------------------------------------

    def by_call(self, breaker: UrlBreaker, change: Change, endpoint: bytes) -> None:
        """A call of the endpoint changed it; its result follows, and takes the change into the ledger along."""
        if self._reports is None:
            self._record.breaker_changed(breaker, change, endpoint)
        else:
            self._reports.on_breaker_change(breaker, change, endpoint)
        self._heed(breaker, endpoint)

    def probe_now(self, breaker: UrlBreaker) -> None:
        """Bring its next probe forward: the trouble that opened it may be mended."""
        breaker.hasten(self._clock.now())
        self.hastened(breaker)
        for route in breaker.routes:
            self._refill.wants_work(route)

    def hastened(self, breaker: UrlBreaker) -> None:
        """It may be probed sooner, by whichever node can."""
        if self._reports is not None:
            self._reports.hastened(breaker)

    def by_hand(self, breaker: UrlBreaker) -> None:
        """A person says that its receiver is well. The backlog begins slowly, as behind a probe."""
        if breaker.close(self._clock.now()) is None:
            return
        for route in breaker.routes:
            for limit in route.limits:
                limit.ramp()
        self._closed(breaker)

    # -- by others ------------------------------------------------------------------------------------------

    def hear(self, view: View) -> None:
        """Somebody says that a breaker stands so."""
        breaker = self._breakers.get((view.tenant, view.key))
        if breaker is None:
            self._breakers.hear(view, self._clock.now())
        elif breaker.hear_view(view):
            self.heard(breaker)

    def heard(self, breaker: UrlBreaker) -> None:
        """Others opened, closed or hastened it, or all together did."""
        if breaker.is_unheeded:  # the other node does not know yet that no policy heeds it
            breaker.close(self._clock.now())
            self._closed(breaker)
        else:
            self._parking.heed(breaker)

    async def look(self) -> None:
        """Hear what the ledger says, while the others cannot be asked."""
        known = [breaker.place for breaker in self._breakers.unclosed]
        self._breakers.forget_heard(self._clock.now())
        for row in await self._ledger.breakers(known):
            self.hear(_view(row))

    async def amend(self) -> None:
        """Write what the ledger has not been told of between two looks, and tell the others what they have forgotten.

        Who decided a change has died after the others took it as theirs, and before it was written; each of them leaves that to
        the one who decided. And what they share may have been lost before this node heard of a closing: all of them but this
        one know of it, and nobody sees that it tells of the opening for ever, since that is no change of late.
        """
        rows = await self._ledger.breakers([breaker.place for breaker in self._breakers.unclosed])
        for row in rows:
            self._remind(row)
        unclosed = {(row.tenant, row.key): row for row in rows if row.state != "closed"}
        behind = {breaker.place: 0 for breaker in self._breakers.unclosed if breaker.place not in unclosed}
        for place, row in unclosed.items():
            breaker = self._breakers.get(place)
            if breaker is not None and breaker.is_closed and row.generation < breaker.generation:
                behind[place] = row.generation
        for place, generation in behind.items():
            if self._behind.get(place) == generation:
                self._record.breaker_stands(self._breakers[place])
        self._behind = behind

    def _remind(self, row: BreakerRow) -> None:
        """Tell the others what the ledger knows and this node does not. Their answer is heard here like any of theirs."""
        breaker = self._breakers.get((row.tenant, row.key))
        if breaker is not None and breaker.generation < row.generation and self._reports is not None:
            self._reports.know_better(of_row(row))

    # -- by the configuration -----------------------------------------------------------------------------

    def restore(self, stood: Sequence[BreakerRow]) -> None:
        """Go on where the ledger said that breakers stood, before the configuration was read."""
        for row in stood:
            breaker = self._breakers.get((row.tenant, row.key))
            if breaker is None:
                orphan = UrlBreaker(row.tenant, row.key, None)
                orphan.restore(row)
                orphan.close(self._clock.now())
                self._gone(orphan)
            else:
                breaker.restore(row)
                self._breakers.unsettle(breaker)
        self.settle()

    def settle(self) -> None:
        """The configuration in memory has changed: the last endpoint of some is gone, or no policy heeds them any more."""
        for breaker, is_known in self._breakers.settle(self._clock.now()):
            if breaker.routes:
                self._closed(breaker)
            elif is_known:
                self._gone(breaker)

    def _closed(self, breaker: UrlBreaker) -> None:
        """It was closed by no call, so no result takes that along."""
        endpoint = breaker.oldest.endpoint.id
        if self._reports is None:
            self._record.breaker_told(breaker, "closed", endpoint)
        else:
            self._reports.on_breaker_change(breaker, "closed", endpoint)
        self._heed(breaker, endpoint)

    def _heed(self, breaker: UrlBreaker, endpoint: bytes) -> None:
        """Others may take back what is parked, as we may."""
        if breaker.is_closed:
            self._peers.closed(endpoint)
        self._parking.heed(breaker)

    def _gone(self, breaker: UrlBreaker) -> None:
        self._record.breaker_stands(breaker)
        if self._reports is not None:
            self._reports.gone(breaker)


def _view(row: BreakerRow) -> View:
    return View(
        tenant=row.tenant, key=row.key, state="closed" if row.state == "closed" else "open", reason=row.reason or None,
        opened_at=row.opened_at, probe_at=row.probe_at, generation=row.generation,
    )  # fmt: skip
