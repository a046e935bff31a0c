"""Putting aside and taking back: nothing sleeps for ever.

Parking is one batched update for everything that could not be sent now. Taking back is by endpoint, a few
rows at a time, as memory and slots free up: a backlog of a million drains at the pace of its endpoint and
costs nothing while it waits. Three things start a taking back: an endpoint's queue ran low (`hungry`), a
probe is due, or the ten-second look found a parked group whose reason no longer holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from surehook.core.breaker import Breaker
from surehook.core.delivery import is_too_old
from surehook.core.errors import LedgerBroken, LedgerUnavailable, NodeBuried
from surehook.core.model import RETRY, STANDING_REASONS, Delivery
from surehook.delivery.batch import Batches
from surehook.delivery.claim import Claim
from surehook.delivery.deliver import Deliver
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.lost import Lost
from surehook.delivery.managing import Book
from surehook.delivery.orphans import end_unknown
from surehook.delivery.routes import Directory, Route
from surehook.delivery.settings import EngineSettings
from surehook.ports.clock import Clock

PULL_ROWS = 500  # rows taken back for one endpoint at a time
PROBE_ROWS = 10  # rows looked through for one that is due
PROBE_LONGEST_S = 60.0  # a probe that takes longer was lost with its node
PROBE_AGAIN_MS = 1_000  # another node is the probe: look again then
ENDED_ROWS = 1000  # rows of a deleted endpoint ended in one look
STRAY_REST_S = 1.0  # between two times that an endpoint's parked work is handed to the other lane's nodes
AGED_ROWS = 200  # parked rows ended by age in one round
STATUSES = ("paused", "inactive", "failure")


class Park:
    """Both directions. `aged` ends deliveries whose max_age passed while parked."""

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
        fail: Callable[[BaseException], None],
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._settings = settings
        self._directory = directory
        self._dispatch = dispatch
        self._node = node
        self._lost = lost
        self._fail = fail
        self.deliver: Deliver | None = None
        self.claim: Claim | None = None
        self.gone: Callable[[list[bytes]], None] = lambda ids: None  # these have left memory
        self._batches: Batches[tuple[Route, Delivery, str]] = Batches(
            self._flush, rows=1000, window_s=settings.record_window_s
        )
        self.may_probe: Callable[[Breaker, float], Awaitable[bool]] = alone  # among all nodes
        self._hungry: dict[Route, None] = {}  # an ordered set
        self._resting: set[Route] = set()  # their parked work was another lane's, which has some to do now
        self._wake = asyncio.Event()
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
                    self._fail(error)
                    break
                except LedgerUnavailable:
                    await asyncio.sleep(wait_s)
                    wait_s = min(wait_s * 2, 2.0)
        for route, delivery, reason in batch:
            self._dispatch.let_go(route, len(delivery.body))
            route.parked.add(reason)
            self.hungry(route)
        self.gone([delivery.id for _, delivery, _ in batch])

    # -- back -------------------------------------------------------------------------------------------

    def hungry(self, route: Route) -> None:
        """This endpoint may be able to take parked work now."""
        if route.parked and route not in self._resting:
            self._hungry[route] = None
            self._wake.set()

    def stop(self) -> None:
        """End the loop once the call in hand is done."""
        self._stopped = True
        self._wake.set()

    async def run(self) -> None:
        """Take back for ever."""
        while not self._stopped:
            try:
                await self._round()
            except NodeBuried as error:
                self._fail(error)
            except LedgerBroken as error:
                self._fail(error)
                return
            except LedgerUnavailable:
                await asyncio.sleep(1.0)
            if not self._stopped:
                await self._rest()

    async def look(self) -> None:
        """The ten-second look: every (endpoint, reason) group that the book has is known here again, and age ends
        what it ends."""
        for breaker in self._directory.breakers.values():
            breaker.mind_the_clock(self._clock.now())
        for group in await self._ledger.parked_groups():
            route = self._directory.routes.get(group.endpoint)
            if route is None:
                # Parked in the moment its endpoint was deleted: nobody else would end it.
                await end_unknown(
                    self._ledger, group.endpoint, limit=ENDED_ROWS, now=self._clock.now()
                )  # or it is younger than what memory knows: the next look has it
                continue
            route.parked.add(group.reason)
            self.hungry(route)
            if group.reason not in STANDING_REASONS:
                await self._end_aged(route, group.reason)

    async def _round(self) -> None:
        hungry, self._hungry = self._hungry, {}
        for route in hungry:
            if self._dispatch.paused or not self._dispatch.has_room():
                self._hungry[route] = None
                continue
            await self._feed(route)
        self._dispatch.pump()

    async def _feed(self, route: Route) -> None:
        reason = route.takes
        if route.gone or not route.parked:
            return
        if reason in ("breaker", "key"):
            await self._probe(route)
            return
        if reason is not None:
            return
        if not route.is_low:
            return  # `deliver` says hungry again as its queue runs low
        limit = min(PULL_ROWS, route.pull, self._dispatch.room(), self._dispatch.share(route))
        restart = "failure" in route.parked
        reasons = ["failure"] if restart else sorted(route.parked - {"failure", "order"})
        if not reasons or limit <= 0:
            return
        rows, strays = await self._take(route, reasons, limit=limit, restart=restart)
        if len(rows) < limit:
            route.parked.difference_update(reasons)
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

    async def _probe(self, route: Route) -> None:
        """Let one delivery through a half-open breaker: one whose time has come, since nothing ever leaves early.
        That is a call of the patient lane, for a node that delivers it."""
        if RETRY not in self._settings.lanes:
            return
        breaker = route.breaker
        now = self._clock.now()
        # The endpoint is active, so that standing reasons hold no longer: their rows may probe as well.
        restart = route.parked == {"failure"}
        reasons = ["failure"] if restart else sorted(route.parked - {"failure", "order"})
        if not reasons or not breaker.take_probe(now):
            return
        sent = False
        try:
            if not await self.may_probe(breaker, PROBE_LONGEST_S):
                breaker.probe_at = now + PROBE_AGAIN_MS
                return
            rows, _ = await self._take(route, reasons, limit=PROBE_ROWS, restart=restart, queue=False)
            if not rows:
                route.parked.difference_update(reasons)
            due = [delivery for delivery in rows if delivery.due_at <= now]
            assert self.deliver is not None
            sent = bool(due) and self.deliver.probe(route, due[0])
            for delivery in rows:
                if (
                    not due or delivery is not due[0]
                ):  # `probe` has taken that one, even where it did not send it
                    self.put(route, delivery, "key" if breaker.reason == "key" else "breaker")
            if rows and not due:
                soonest = min(delivery.due_at for delivery in rows)
                breaker.probe_at = min(soonest, now + int(self._settings.look_s * 1000))
        finally:
            if not sent:
                breaker.give_up_probe()

    async def _take(
        self, route: Route, reasons: list[str], *, limit: int, restart: bool, queue: bool = True
    ) -> tuple[list[Delivery], int]:
        """Rows out of parking, and how many of them went back to the book as another lane's."""
        assert self.claim is not None
        node = self._node()
        with self._lost.leasing():
            rows = await self._ledger.unpark(
                route.endpoint.id, reasons, node=node, limit=limit, now=self._clock.now(), restart=restart
            )
            if node != self._node():
                return [], 0  # buried before the answer came: they are free again
            if queue:
                return rows, self.claim.take(rows)
            for delivery in rows:
                self._dispatch.hold(route, len(delivery.body))
            return rows, 0

    async def _end_aged(self, route: Route, reason: str) -> None:
        youngest = self._directory.youngest_age(route)
        if youngest is None or self.deliver is None:
            return
        now = self._clock.now()
        before = now - int(youngest * 1000)
        rows = await self._ledger.parked_aged(route.endpoint.id, reason, born_before=before, limit=AGED_ROWS)
        old = [
            delivery
            for delivery in rows
            if is_too_old(delivery, self._directory.plan(route, delivery.type).policy, at=now)
        ]
        if old and await self._ledger.version() == self._directory.version:  # else the policy may be another
            notices = [self.deliver.notice_of_age(route, delivery) for delivery in old]
            await self._ledger.end(old, state="dead", reason=None, notices=notices, now=now)

    async def _rest(self) -> None:
        """Until somebody is hungry, or the earliest probe is due."""
        now = self._clock.now()
        probes = [
            breaker.probe_at
            for breaker in self._directory.breakers.values()
            if breaker.state != "closed" and not breaker.probing and breaker.probe_at > now
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
            for route in self._directory.routes.values():
                if route.breaker.state != "closed" and route.breaker.probe_at <= self._clock.now():
                    self.hungry(route)
        self._wake.clear()


async def alone(breaker: Breaker, longest_s: float) -> bool:
    """No other node asks to be the probe."""
    return True
