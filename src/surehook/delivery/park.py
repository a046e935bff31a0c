"""Putting aside and taking back: nothing sleeps for ever.

Parking is one batched update for everything that could not be sent now. Taking back is by endpoint, a few
rows at a time, as memory and slots free up: a backlog of a million drains at the pace of its endpoint and
costs nothing while it waits. Three things start a taking back: an endpoint's queue ran low (`hungry`), a
probe is due, or the ten-second look found a parked group whose reason no longer holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from surehook.core.breaker import Probe
from surehook.core.errors import LedgerBroken, LedgerUnavailable, NodeBuried
from surehook.core.model import RETRY, Delivery
from surehook.delivery.asking import Asking
from surehook.delivery.batch import Batches
from surehook.delivery.breakers import UrlBreaker
from surehook.delivery.claim import Claim
from surehook.delivery.deliver import Deliver
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.loops import Loops
from surehook.delivery.lost import Lost
from surehook.delivery.managing import Book
from surehook.delivery.routes import Directory, Route
from surehook.delivery.settings import EngineSettings
from surehook.delivery.turns import Line
from surehook.ports.clock import Clock
from surehook.ports.health import OVERLAP_MS
from surehook.ports.ledger import ParkedGroup, is_full

PULL_ROWS = 500  # rows taken back for one endpoint at a time
PULL_BYTES = 16 << 20  # … and bytes of their bodies: the ledger's answer is in memory twice for a moment
FULL_LOOKS = 16  # endpoints asked in one record window whether they may hold more by now
PROBE_ROWS = 10  # rows looked through for one that is due
STRAY_REST_S = 1.0  # between two times that an endpoint's parked work is handed to the other lane's nodes
GROUPS_A_TURN = 2_000  # looked at before others have the event loop: a few milliseconds
BREAKER_REASONS = ("breaker", "key")


class Park:
    """Both directions. `groups` is what the last look found parked."""

    def __init__(
        self,
        *,
        ledger: Book,
        clock: Clock,
        settings: EngineSettings,
        directory: Directory,
        dispatch: Dispatch,
        node: Callable[[], bytes],
        lost: Lost,
        loops: Loops,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._settings = settings
        self._directory = directory
        self._dispatch = dispatch
        self._node = node
        self._lost = lost
        self._loops = loops
        self.groups: list[ParkedGroup] = []
        self.deliver: Deliver | None = None
        self.claim: Claim | None = None
        self.gone: Callable[[list[bytes]], None] = lambda ids: None  # these have left memory
        # It may be probed sooner, by whichever node can.
        self.hastened: Callable[[UrlBreaker], None] = lambda breaker: None
        self._batches: Batches[tuple[Route, Delivery, str]] = Batches(
            self._flush, failed=self._broke, rows=1000, window_s=settings.record_window_s
        )
        self._hungry = Line()
        self._full = Line()  # those that would take back, and may hold nothing more
        self._resting: set[Route] = set()  # their parked work was another lane's, which has some to do now
        self._wake = asyncio.Event()
        self.asking = Asking(clock=clock, loops=loops, wake=self._wake.set)
        self._stopped = False

    # -- aside ------------------------------------------------------------------------------------------

    def put(self, route: Route, delivery: Delivery, reason: str) -> None:
        """A held delivery cannot be sent now; its memory is free once the book has it."""
        self._batches.put((route, delivery, reason))

    def put_queue(self, route: Route) -> None:
        """Everything that waits for an endpoint that cannot take it (breaker opened, status changed)."""
        reason = route.takes
        if reason is not None:
            for delivery in self._dispatch.drain(route):
                self.put(route, delivery, reason)

    def heed(self, breaker: UrlBreaker) -> None:
        """It opened or closed: every endpoint that shares it parks its queue, or may take back."""
        for route in breaker.routes:
            if route.takes is None:
                self.freed(route)
            else:
                self.put_queue(route)
                self.hungry(route)

    def freed(self, route: Route) -> None:
        """Its breaker does not hold it: what this and other processes parked for that may be taken back."""
        route.may_have_parked(*BREAKER_REASONS)
        self.hungry(route)

    def probe_now(self, breaker: UrlBreaker) -> None:
        """What opened it may be mended."""
        breaker.hasten(self._clock.now())
        self.hastened(breaker)
        for route in breaker.routes:
            self.hungry(route)

    async def drained(self) -> None:
        await self._batches.drained()

    def forget(self) -> list[tuple[Route, Delivery]]:
        """This node was buried: what is on its way into parking was freed."""
        return [(route, delivery) for route, delivery, _ in self._batches.forget()]

    def pending_ids(self) -> list[bytes]:
        """Deliveries that are on their way into parking."""
        return [delivery.id for _, delivery, _ in self._batches.items()]

    async def _flush(self, batch: list[tuple[Route, Delivery, str]]) -> None:
        node = self._node()  # who holds them, however often it is tried
        by_reason: dict[str, list[Delivery]] = {}
        for _, delivery, reason in batch:
            by_reason.setdefault(reason, []).append(delivery)
        for reason, deliveries in by_reason.items():
            wait_s = 0.05
            while True:
                try:
                    await self._ledger.park(deliveries, reason, node=node, now=self._clock.now())
                    break
                except (NodeBuried, LedgerBroken) as error:
                    self._loops.fail(error)
                    break
                except LedgerUnavailable as error:
                    self._loops.outage.met("park", error)
                    await asyncio.sleep(wait_s)
                    wait_s = min(wait_s * 2, 2.0)
        for route, delivery, reason in batch:
            self._dispatch.memory.let_go(route, delivery)
            route.may_have_parked(reason)
            self.hungry(route)
        self.gone([delivery.id for _, delivery, _ in batch])
        # Who waits for a share is not asked again here: what was parked for want of one would be taken back at once.
        assert self.claim is not None
        self.claim.freed()

    def _broke(self, batch: list[tuple[Route, Delivery, str]], error: Exception) -> None:
        self._loops.defect("park", error)

    # -- back -------------------------------------------------------------------------------------------

    def hungry(self, route: Route) -> None:
        """This endpoint may be able to take parked work now."""
        if route.parked and route not in self._resting:
            self._hungry.add(route)
            self._wake.set()

    def let_go(self) -> None:
        """Deliveries have left memory: who waits for a share of it may have one now."""
        for _ in range(min(len(self._full), FULL_LOOKS)):
            route = self._full.take()
            if self._dispatch.memory.has_share(route):
                self.hungry(route)
            else:
                self._full.add(route)

    def stop(self) -> None:
        """End the loop once the call in hand is done."""
        self._stopped = True
        self._wake.set()

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
                self.hungry(route)

    def _mind_the_clock(self, breaker: UrlBreaker, now: int) -> None:
        before = breaker.probe_at
        breaker.mind_the_clock(now)
        # Where it opened in the future, this clock was set back; what is less may be the distance of clocks.
        if breaker.opened_at <= now and before - breaker.probe_at > OVERLAP_MS:
            self.hastened(breaker)

    async def _round(self) -> None:
        while self.asking.waiting and self.asking.is_free:
            self._ask(self.asking.waiting.take())
        await self._probe_granted()
        for _ in range(len(self._hungry)):
            if not self._may_take_back():
                break
            await self._feed(self._hungry.take())
            await self._probe_granted()
            self._dispatch.pump()

    def _may_take_back(self) -> bool:
        return not self._dispatch.paused and self._dispatch.memory.has_room()

    async def _probe_granted(self) -> None:
        while self.asking.granted and self._may_take_back():
            await self._probe(*self.asking.granted.popleft())

    async def _feed(self, route: Route) -> None:
        reason = route.takes
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
            self._full.add(route)
            return
        size = min(PULL_BYTES, memory.share_bytes(route))
        restart = "failure" in route.parked
        reasons = ["failure"] if restart else sorted(route.parked - {"failure", "order"})
        if not reasons:
            return
        rows, strays = await self._take(route, reasons, limit=limit, size=size, restart=restart)
        if not is_full(rows, limit=limit, size=size):
            route.has_taken_back(reasons)
        if strays:
            self._rest_route(route)
        if route.is_low:
            self.hungry(route)  # what came was not due, or parked again: go on until something can be sent

    def _rest_route(self, route: Route) -> None:
        """What was taken back is another lane's, and our own queue would never say that there is enough of it."""
        self._resting.add(route)
        asyncio.get_running_loop().call_later(STRAY_REST_S, self._rested, route)

    def _rested(self, route: Route) -> None:
        self._resting.discard(route)
        self.hungry(route)

    def _ask(self, route: Route) -> None:
        """A probe is a call of the patient lane, for a node that delivers it, and needs something to send."""
        if RETRY in self._settings.lanes and route.takes in BREAKER_REASONS and _standing(route)[0]:
            self.asking.ask(route)

    async def _probe(self, route: Route, breaker: UrlBreaker, probe: Probe) -> None:
        """Let one delivery through a half-open breaker: one whose time has come, since nothing ever leaves early."""
        now = self._clock.now()
        reasons, restart = _standing(route)
        sent = False
        try:
            if breaker.probe is not probe or route.breaker is not breaker or route.gone:
                return  # closed, called elsewhere or gone since it was asked for
            if route.takes not in BREAKER_REASONS or not reasons:
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
                or route.takes not in BREAKER_REASONS
            ):
                due = []  # closed, paused, or called elsewhere meanwhile
            assert self.deliver is not None
            for delivery in rows:
                if due and not sent and delivery.due_at <= now:
                    sent = self.deliver.probe(route, delivery, probe)  # or it was past its age, and has ended
                else:
                    self.put(route, delivery, route.takes or "breaker")
            if rows and not due:
                soonest = min(delivery.due_at for delivery in rows)
                breaker.drop_probe(probe, next_at=min(soonest, now + int(self._settings.look_s * 1000)))
        finally:
            if not sent:
                breaker.drop_probe(probe)

    async def _take(
        self,
        route: Route,
        reasons: list[str],
        *,
        limit: int,
        size: int,
        restart: bool,
        queue: bool = True,
    ) -> tuple[list[Delivery], int]:
        """Rows out of parking, and how many of them went back to the book as another lane's."""
        assert self.claim is not None
        node = self._node()
        with self._lost.leasing():
            rows = await self._ledger.unpark(
                route.endpoint.id, reasons,
                node=node, limit=limit, now=self._clock.now(), size=size, restart=restart,
            )  # fmt: skip
            if node != self._node():
                return [], 0  # buried before the answer came: they are free again
            if queue:
                return rows, self.claim.take(rows, out_of_parking=True)
            for delivery in rows:
                self._dispatch.memory.hold(route, delivery)
            return rows, 0

    async def _rest(self) -> None:
        """Until somebody is hungry, or the earliest probe is due."""
        now = self._clock.now()
        unclosed = self._directory.breakers.unclosed
        probes = [
            breaker.probe_at for breaker in unclosed if not breaker.is_probing and breaker.probe_at > now
        ]
        wait_s = (
            min(max(0.01, (min(probes) - now) / 1000), self._settings.look_s)
            if probes
            else self._settings.look_s
        )
        try:
            async with asyncio.timeout(wait_s):
                await self._wake.wait()
        except TimeoutError:
            now = self._clock.now()
            for breaker in [breaker for breaker in unclosed if breaker.probe_at <= now]:
                for route in breaker.routes:
                    self.hungry(route)
        self._wake.clear()


def _standing(route: Route) -> tuple[list[str], bool]:
    """Reasons whose rows may probe, and whether that begins what failed anew: the endpoint is active, so that standing
    reasons hold no longer."""
    if route.parked == {"failure"}:
        return ["failure"], True
    return sorted(route.parked - {"failure", "order"}), False
