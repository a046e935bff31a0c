"""Taking back what is parked, by endpoint, a few rows at a time, as memory and slots free up: nothing sleeps for ever.

A backlog of a million drains at the pace of its endpoint. An endpoint is served when its queue runs low (`refill.py`), when a
probe of its breaker is due, or when the ten-second look finds a parked group whose reason no longer holds.
"""

from __future__ import annotations

import asyncio

from surehook.core.breaker import Probe
from surehook.core.model import RETRY, Delivery
from surehook.delivery.arrivals import Arrivals
from surehook.delivery.breaker_changes import BreakerChanges
from surehook.delivery.cluster_health import ClusterHealth
from surehook.delivery.deliver import Deliver
from surehook.delivery.directory import Directory
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.endpoint_state import EndpointState, UrlBreaker
from surehook.delivery.holdings import Holdings
from surehook.delivery.loops import Loops
from surehook.delivery.managing import WholeLedger
from surehook.delivery.node import Node
from surehook.delivery.parking import Parking
from surehook.delivery.probe_requests import ProbeRequests
from surehook.delivery.pump import Pump
from surehook.delivery.refill import BREAKER_REASONS, Refill
from surehook.delivery.settings import EngineSettings
from surehook.ports.clock import Clock
from surehook.ports.health import OVERLAP_MS
from surehook.ports.ledger import ParkedGroup, is_full

PULL_ROWS = 500  # rows taken back for one endpoint at a time
PULL_BYTES = 16 << 20  # … and bytes of their bodies: the ledger's answer is in memory twice for a moment
PROBE_ROWS = 10  # rows looked through for one that is due
GROUPS_A_TURN = 2_000  # looked at before others have the event loop: a few milliseconds
# For each open breaker, from one look at all of them to the next: whoever publishes to its endpoint wakes the loop.
BREAKER_REST_S = 10e-6
PROBE_LATE_S = 0.01  # a probe that is due is noticed at most so late, and by the rest above


class Unpark:
    """The loop that serves `refill`, and probes. `groups` is what the last look found parked."""

    def __init__(
        self,
        *,
        ledger: WholeLedger,
        clock: Clock,
        settings: EngineSettings,
        node: Node,
        loops: Loops,
        directory: Directory,
        dispatch: Dispatch,
        pump: Pump,
        deliver: Deliver,
        arrivals: Arrivals,
        parking: Parking,
        refill: Refill,
        holdings: Holdings,
        breakers: BreakerChanges,
        health: ClusterHealth | None,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._settings = settings
        self._node = node
        self._directory = directory
        self._dispatch = dispatch
        self._pump = pump
        self._deliver = deliver
        self._arrivals = arrivals
        self._parking = parking
        self._refill = refill
        self._holdings = holdings
        self._breakers = breakers
        self.groups: list[ParkedGroup] = []
        self.probes = ProbeRequests(clock=clock, loops=loops, health=health, refill=refill)
        self._stopped = False
        self._looks_at = 0.0  # at open breakers, by boot time
        self._seen_at = 0  # instant of the last look at them
        self._next_probe = 0.0  # boot time at which the first of them is due

    def stop(self) -> None:
        """End the loop once the call in hand is done."""
        self._stopped = True
        self._refill.wake.set()

    async def run(self) -> None:
        """Take back until it is stopped."""
        while not self._stopped:
            await self._round()
            if not self._stopped:
                await self._rest()

    async def look(self) -> None:
        """Every (endpoint, reason) group that the ledger has is known here again."""
        for breaker in self._directory.breakers.unclosed:
            self._mind_the_clock(breaker, self._clock.now())
        self.groups = await self._ledger.parked_groups()
        for number, group in enumerate(self.groups, 1):
            if number % GROUPS_A_TURN == 0:
                await self._clock.sleep(0)
            route = self._directory.routes.get(group.endpoint)
            if route is not None:
                route.may_have_parked(group.reason)
                self._refill.wants_work(route)

    def _mind_the_clock(self, breaker: UrlBreaker, now: int) -> None:
        before = breaker.probe_at
        breaker.mind_the_clock(now)
        # Where it opened in the future, this clock was set back; what is less may be the distance of clocks.
        if breaker.opened_at <= now and before - breaker.probe_at > OVERLAP_MS:
            self._breakers.hastened(breaker)

    async def _round(self) -> None:
        while self.probes.waiting and self.probes.is_free:
            self._ask(self.probes.waiting.take())
        await self._probe_granted()
        for _ in range(len(self._refill.wanting)):
            if not self._may_unpark():
                break
            await self._feed(self._refill.wanting.take())
            await self._probe_granted()
            self._pump.pump()

    def _may_unpark(self) -> bool:
        return not self._dispatch.paused and self._dispatch.memory.has_room()

    async def _probe_granted(self) -> None:
        while self.probes.granted and self._may_unpark():
            await self._probe(*self.probes.granted.popleft())

    async def _feed(self, route: EndpointState) -> None:
        reason = route.block_reason
        if route.gone or not route.parked:
            return
        if reason is not None:
            route.free_since = None
        elif route.free_since is None:
            route.free_since = self._clock.now()
        if reason in BREAKER_REASONS:
            self._ask(route)
            return
        if reason is not None:
            return
        if not route.is_low:
            return  # `deliver` says hungry again as its queue runs low
        memory = self._dispatch.memory
        limit = min(PULL_ROWS, route.pull, memory.share(route))
        if limit <= 0:
            self._refill.is_full(route)
            return
        size = min(PULL_BYTES, memory.share_bytes(route))
        restart = "failure" in route.parked
        reasons = ["failure"] if restart else sorted(route.parked - {"failure", "order"})
        if not reasons:
            return
        rows, wrong_lane = await self._take(route, reasons, limit=limit, size=size, restart=restart)
        if not is_full(rows, limit=limit, size=size):
            route.has_taken_back(reasons)
        if wrong_lane:
            self._refill.rest(route)
        if route.is_low:
            # what came was not due, or parked again: go on until something can be sent
            self._refill.wants_work(route)

    def _ask(self, route: EndpointState) -> None:
        """A probe is a call of the patient lane, for a node that delivers it, and needs something to send."""
        if RETRY in self._settings.lanes and route.block_reason in BREAKER_REASONS and _standing(route)[0]:
            self.probes.ask(route)

    async def _probe(self, route: EndpointState, breaker: UrlBreaker, probe: Probe) -> None:
        """Let one delivery through a half-open breaker: one whose time has come, since nothing ever leaves early."""
        now = self._clock.now()
        reasons, restart = _standing(route)
        sent = False
        try:
            if breaker.probe is not probe or route.breaker is not breaker or route.gone:
                return  # closed, called elsewhere or gone since it was asked for
            if route.block_reason not in BREAKER_REASONS or not reasons:
                return
            rows, _ = await self._take(
                route, reasons, limit=PROBE_ROWS, size=PULL_BYTES, restart=restart, queue=False
            )
            if not rows:
                route.has_taken_back(reasons)
            due = [delivery for delivery in rows if delivery.due_at <= now]
            if (
                breaker.probe is not probe
                or route.breaker is not breaker
                or route.block_reason not in BREAKER_REASONS
            ):
                due = []  # closed, paused, or called elsewhere meanwhile
            for delivery in rows:
                if due and not sent and delivery.due_at <= now:
                    # or it was past its age, and has ended
                    sent = self._deliver.probe(route, delivery, probe)
                else:
                    self._parking.put(route, delivery, route.block_reason or "breaker")
            if rows and not due:
                soonest = min(delivery.due_at for delivery in rows)
                breaker.drop_probe(probe, next_at=min(soonest, now + int(self._settings.look_s * 1000)))
        finally:
            if not sent:
                breaker.drop_probe(probe)

    async def _take(
        self,
        route: EndpointState,
        reasons: list[str],
        *,
        limit: int,
        size: int,
        restart: bool,
        queue: bool = True,
    ) -> tuple[list[Delivery], int]:
        """Rows out of parking, and how many of them went back to the ledger as another lane's."""
        node = self._node.id
        with self._holdings.leasing():
            rows = await self._ledger.unpark(
                route.endpoint.id, reasons,
                node=node, limit=limit, now=self._clock.now(), size=size, restart=restart,
            )  # fmt: skip
            if not self._node.is_still(node):
                return [], 0  # evicted before the answer came: they are free again
            if queue:
                return rows, self._arrivals.take(rows, out_of_parking=True)
            for delivery in rows:
                self._dispatch.memory.hold(route, delivery)
            return rows, 0

    async def _rest(self) -> None:
        """Until somebody is hungry, or the earliest probe is due."""
        boot = self._clock.boot()
        if boot >= self._looks_at:
            self._look_for_probes(boot)
            until = self._next_probe
        else:
            until = min(self._next_probe, self._looks_at)
        try:
            async with asyncio.timeout(max(0.001, until - boot)):
                await self._refill.wake.wait()
        except TimeoutError:
            boot = self._clock.boot()
            if boot >= self._next_probe:
                self._want_due(since=0)
                self._next_probe = max(self._looks_at, boot + PROBE_LATE_S)
        self._refill.wake.clear()

    def _look_for_probes(self, boot: float) -> None:
        """Find the next probe, and want work for those that fell due since the last look: who is woken all the time never
        waits until one is due. What is due for longer is wanted when nothing else is to be done, and by the ten-second look."""
        now = self._clock.now()
        unclosed = self._directory.breakers.unclosed
        self._want_due(since=min(self._seen_at, now))
        self._seen_at = now
        probes = [
            breaker.probe_at for breaker in unclosed if not breaker.is_probing and breaker.probe_at > now
        ]
        wait_s = max(PROBE_LATE_S, (min(probes) - now) / 1000) if probes else self._settings.look_s
        self._next_probe = boot + min(wait_s, self._settings.look_s)
        self._looks_at = boot + len(unclosed) * BREAKER_REST_S

    def _want_due(self, *, since: int) -> None:
        now = self._clock.now()
        for breaker in self._directory.breakers.unclosed:
            if since < breaker.probe_at <= now and not breaker.is_probing:
                for route in breaker.routes:
                    self._refill.wants_work(route)


def _standing(route: EndpointState) -> tuple[list[str], bool]:
    """Reasons whose rows may probe, and whether that begins what failed anew: the endpoint is active, so that standing
    reasons hold no longer."""
    if route.parked == {"failure"}:
        return ["failure"], True
    return sorted(route.parked - {"failure", "order"}), False
