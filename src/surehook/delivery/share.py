"""What nodes decide together: breakers on everybody's calls, one probe among all.

Once a second, and at once when a breaker turns here, a node reports what it counted and learns what all have
found (`ports/health.py`). A turn takes effect here at once; it is written into the book, and people are told of
it, when the others have taken it as theirs: of five nodes that open one breaker in the same second, one says so.

Deliveries never wait for any of this. Without an answer each node decides on its own window, is its own probe
and uses all of an endpoint's slots; it keeps its turns to tell them later, but those of breakers without an endpoint.
Only a probe waits for a word: until the store is known to be away, and beside all taking back (`delivery/asking.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Set

from surehook.core.breaker import Breaker, Change
from surehook.delivery.breakers import Place, UrlBreaker
from surehook.delivery.cluster_health import ClusterHealth
from surehook.delivery.routes import Directory
from surehook.delivery.slot_parts import SlotParts
from surehook.ports.clock import Clock
from surehook.ports.health import BreakerUpdate, Counted, Health, HealthAway, HealthReply, View
from surehook.ports.telemetry import Telemetry

EXCHANGE_S = 1.0  # between two exchanges, at most
GAP_S = 0.05  # … and at least
REPORTS_MAX = 1_000  # breakers, and turns of them, in one exchange; the others come with the next
# Exchanges: then every breaker that is not closed is told again, for a store that has forgotten.
AGAIN_EVERY = 10

Told = tuple[UrlBreaker, Change, bytes]  # what changed, how, and by a call of which endpoint


class Share:
    """One node's part. `told` writes a turn into the book, `opened` makes one that all found together take effect;
    what the others say is for `cluster` to judge."""

    def __init__(
        self,
        *,
        health: Health,
        clock: Clock,
        directory: Directory,
        telemetry: Telemetry,
        node: Callable[[], bytes],
        slots: SlotParts,
        told: Callable[[UrlBreaker, Change, bytes], None],
        cluster: ClusterHealth,
        opened: Callable[[UrlBreaker], None],
    ) -> None:
        self._health = health
        self._clock = clock
        self._directory = directory
        self._telemetry = telemetry
        self._node = node
        self._slots = slots
        self._told = told
        self._cluster = cluster
        self._opened = opened
        self._turned: dict[Place, Told] = {}  # not known to the others yet
        self._untold: dict[Place, Told] = {}  # … and not in the book either
        self._newer: dict[Place, UrlBreaker] = {}  # of which we know better than the store
        self._hastened: dict[Place, BreakerUpdate] = {}  # to be probed sooner, which nobody else knows yet
        self._wake = asyncio.Event()
        self._since = 0
        self._rounds = 0
        self.is_away = False

    # -- deliver's and park's side ----------------------------------------------------------------------

    def turned(self, breaker: UrlBreaker, change: Change, endpoint: bytes) -> None:
        """A breaker turned here, by a call of the endpoint."""
        self._turned[breaker.place] = self._untold[breaker.place] = (breaker, change, endpoint)
        self._hastened.pop(breaker.place, None)
        self._wake.set()

    def hastened(self, breaker: UrlBreaker) -> None:
        """It may be probed sooner, by whichever node delivers the patient lane."""
        self._hastened[breaker.place] = _turn(breaker, hastened=True)
        self._wake.set()

    def gone(self, breaker: UrlBreaker) -> None:
        """The last endpoint with its URL is gone: the others may forget it, and nobody need be told of its turns."""
        self._untold.pop(breaker.place, None)
        if self.is_away:
            self._turned.pop(breaker.place, None)  # see `_forget_gone`
            return
        self._turned[breaker.place] = (breaker, "closed", b"")
        self._wake.set()

    async def may_probe(self, breaker: UrlBreaker, longest_s: float) -> bool:
        """Whether this node is the probe of all. Where the others cannot be asked, it is, and while it is known that they
        cannot, nobody waits to hear so again: the next exchange finds out when they can."""
        if self.is_away:
            return True
        now = self._clock.now()
        until = now + int(longest_s * 1000)
        try:
            return await self._health.take_probe(
                breaker.tenant, breaker.key, node=self._node(), until=until, now=now
            )
        except HealthAway as away:
            self._went(str(away))
            return True

    def stop(self) -> None:
        """Write down what nobody has confirmed."""
        for place in list(self._untold):
            self._tell(place)

    # -- exchanges --------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Exchange for ever."""
        while True:
            await self.exchange()
            try:
                async with asyncio.timeout(EXCHANGE_S):
                    await self._wake.wait()
                    await self._clock.sleep(GAP_S)
            except TimeoutError:
                pass
            self._wake.clear()

    async def exchange(self) -> None:
        """Report and learn once."""
        breakers = self._reporting()
        counted = [self._counted(breaker) for breaker in breakers]
        failing = {
            (report.tenant, report.key)
            for report in counted
            if any(failures for _, _, failures in report.buckets)
        }
        turned = {place: self._turned.pop(place) for place in list(self._turned)[:REPORTS_MAX]}
        turns = [_turn(breaker) for breaker, _, _ in turned.values()]
        newer, self._newer = self._newer, {}
        turns += [_turn(one, again=True) for place, one in newer.items() if place not in turned]
        hastened = {place: self._hastened.pop(place) for place in list(self._hastened)[:REPORTS_MAX]}
        turns += hastened.values()
        if self._rounds % AGAIN_EVERY == 0:
            turns += self._again(turned.keys() | newer.keys())
        self._rounds += 1
        node = self._node()
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
            for place, turn in turned.items():
                self._turned.setdefault(place, turn)  # a newer one holds
            self._hastened = hastened | self._hastened
            self._forget_gone()
            self.stop()
            return
        self._came_back()
        self._since = word.since
        self._learn(word, turned, failing, node.hex())

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
        return [_turn(breaker, again=True) for breaker in open_ones[first : first + REPORTS_MAX]]

    # -- what the others say ----------------------------------------------------------------------------

    def _learn(self, word: HealthReply, turned: dict[Place, Told], failing: set[Place], author: str) -> None:
        now = self._clock.now()
        self._directory.breakers.forget_heard(now)
        for view in word.views:
            place = (view.tenant, view.key)
            if place in self._turned:
                continue  # it turned again meanwhile: the next exchange settles it
            self._cluster.hear(view)
            if place in self._turned:
                continue  # what was heard has turned it once more
            if place in turned:  # its generation is everybody's now
                self._settle(place, view, author)
            breaker = self._directory.breakers.get(place)
            if breaker is None:
                continue
            if 0 < view.generation < breaker.generation:
                self._newer[place] = breaker
            if view.calls is None or view.failures is None:
                continue
            if breaker.learn(view.calls, view.failures, now, failed=place in failing) is not None:
                self._opened_together(breaker)
        self._slots.divide(word.sharers, now)

    def _settle(self, place: Place, view: View, author: str) -> None:
        """Our turn is everybody's, or another node was faster."""
        if view.author == author:
            self._tell(place)
        self._untold.pop(place, None)

    def _tell(self, place: Place) -> None:
        turn = self._untold.pop(place, None)
        if turn is not None:
            self._told(*turn)

    def _forget_gone(self) -> None:
        """After an outage nobody need be told of breakers without an endpoint: the store forgets them by itself, and an
        outage in which URLs change would keep every one of them."""
        of_all = self._directory.breakers
        self._turned = {place: told for place, told in self._turned.items() if of_all.get(place) is told[0]}
        self._newer = {place: one for place, one in self._newer.items() if of_all.get(place) is one}
        self._hastened = {
            place: turn for place, turn in self._hastened.items() if of_all.get(place) is not None
        }

    def _opened_together(self, breaker: UrlBreaker) -> None:
        """No single node's calls would have opened it."""
        self.turned(breaker, "opened", breaker.oldest.endpoint.id)
        self._opened(breaker)

    def _went(self, why: str) -> None:
        if not self.is_away:
            self.is_away = True
            self._telemetry.fact("health.away", error=why)
        self._slots.whole()

    def _came_back(self) -> None:
        if self.is_away:
            self.is_away = False
            self._telemetry.fact("health.back")


def _turn(breaker: UrlBreaker, *, again: bool = False, hastened: bool = False) -> BreakerUpdate:
    return BreakerUpdate(
        tenant=breaker.tenant,
        key=breaker.key,
        state="closed" if breaker.is_closed else "open",
        reason=breaker.reason,
        opened_at=breaker.opened_at,
        probe_at=breaker.probe_at,
        generation=breaker.generation,
        again=again,
        hastened=hastened,
    )
