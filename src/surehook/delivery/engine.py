"""The sender as a whole: its parts, in the order in which they start and stop.

    accept ──▶ ledger ──▶ dispatch ──▶ deliver ──▶ record ──▶ ledger
                             ▲            │
              claim ─────────┤            ├──▶ park ──▶ ledger
              park (back) ───┘            │
    heartbeat and rescue keep the lease true; prune forgets; `Engine` ties and tears down.

A buried node forgets its memory and begins again under a new id. A ledger that cannot be trusted any more
ends the engine (`failure` says why): the process should stop and be started again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any

from surehook.core import ids
from surehook.core.breaker import Breaker
from surehook.core.envelope import EventIn
from surehook.core.errors import LedgerError, LedgerUnavailable, NodeBuried, Problem
from surehook.core.model import Delivery, Endpoint, Notice
from surehook.delivery.accept import Accept
from surehook.delivery.around import Host, Metrics, NoMetrics
from surehook.delivery.board import breaker_views
from surehook.delivery.book_clock import BookClock
from surehook.delivery.claim import Claim
from surehook.delivery.deliver import Deliver
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.handoff.office import Handoff
from surehook.delivery.heartbeat import Heartbeat
from surehook.delivery.known import in_memory
from surehook.delivery.leave import Leave
from surehook.delivery.lost import Lost
from surehook.delivery.managing import Book, BreakerView
from surehook.delivery.neighbours import BREAKER_REASONS, Neighbours
from surehook.delivery.orphans import end_orphans
from surehook.delivery.park import Park
from surehook.delivery.prune import Prune
from surehook.delivery.record import Record
from surehook.delivery.request import static_heads
from surehook.delivery.rescue import Rescue
from surehook.delivery.routes import Directory, Route
from surehook.delivery.settings import EngineSettings
from surehook.delivery.share import Share
from surehook.delivery.tokens import Tokens
from surehook.delivery.watch import Watch
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy
from surehook.ports.handoff import Broker, Handing
from surehook.ports.health import Health
from surehook.ports.ledger import Taken
from surehook.ports.reading import LaneCount
from surehook.ports.telemetry import Telemetry
from surehook.ports.transport import Target, Transport
from surehook.ports.wakeups import NoWakeups, Wakeups

STOP_S = 5.0  # beyond the grace time a shutdown may take this long to write what it knows


class Engine:
    """Start it, use `accept`, stop it. All parts are handed in."""

    def __init__(
        self,
        *,
        ledger: Book,
        transport: Transport,
        clock: Clock,
        entropy: Entropy,
        host: Host,
        telemetry: Telemetry,
        settings: EngineSettings | None = None,
        sole: bool = True,
        wakeups: Wakeups | None = None,
        broker: Broker | None = None,
        handing: Handing | None = None,
        health: Health | None = None,
    ) -> None:
        """`sole`: the ledger admits one process at a time, so every other node in the book is dead (SQLite).
        `wakeups`: hints to and from the other processes on this ledger; None: nobody is told.
        `broker` and `handing`, the ledger's marks for it: hand ready work over to workers elsewhere.
        `health`: what all nodes know together of endpoints; None: each decides alone."""
        self.ledger = ledger
        self.transport = transport
        self.clock = BookClock(clock)
        self.wakeups = wakeups or NoWakeups()
        self.entropy = entropy
        self.settings = settings or EngineSettings()
        self.telemetry = telemetry
        self.watch = Watch()
        self.lane_counts: list[LaneCount] = []  # as of the last look
        self.parked_counts: dict[tuple[bytes, str], int] = {}
        self.metrics: Metrics = NoMetrics()
        self.failure: str | None = None
        self.failed = asyncio.Event()
        self.looks: list[Callable[[], Awaitable[None]]] = []  # what else is done at each
        self._host = host
        self._sole = sole
        self._broker = broker
        self._handing = handing
        self._health = health
        self._node_id = b""
        self._running = False
        self._leasing: list[asyncio.Task[None]] = []
        self._reborn = False  # a burial is being answered
        self._tasks: list[asyncio.Task[None]] = []
        self._background: set[asyncio.Task[None]] = set()
        self._reloading = asyncio.Lock()
        self._refreshing = False  # a reload that a beat or a hint asked for is about to begin
        self.tokens = Tokens(transport=transport, clock=clock, telemetry=telemetry)
        self.directory = Directory(
            make_target=self._target, make_heads=static_heads, slots=self.settings.endpoint_slots
        )
        self._build()

    def _build(self) -> None:
        common: dict[str, Any] = {"ledger": self.ledger, "clock": self.clock, "settings": self.settings}
        node = self.node
        self.record = Record(
            **common,
            entropy=self.entropy,
            sole=self._sole,
            node=node,
            changed=self.changed,
            notify=self._notify,
            fail=self._fail,
        )
        self.dispatch = Dispatch(self.settings, self._start_delivery)
        self.tokens.welcome = self.dispatch.welcome
        self.lost = Lost(**common, node=node, in_memory=self._in_memory, wake=self.wake)
        leasing: dict[str, Any] = {**common, "lost": self.lost}
        self.park = Park(
            **leasing, directory=self.directory, dispatch=self.dispatch, node=node, fail=self._fail
        )
        self.claim = Claim(
            **leasing,
            directory=self.directory,
            dispatch=self.dispatch,
            node=node,
            park=self.park.put,
            orphan=self._orphaned,
            stray=self.record.put_stray,
            hand_back=self._hand_back,
            may_claim=self._may_claim,
            fail=self._fail,
        )
        self.heartbeat = Heartbeat(
            **common, node=node, dead=self._others_died, beaten=self._beaten, fail=self._fail, host=self._host
        )
        self.deliver = Deliver(
            tokens=self.tokens,
            clock=self.clock,
            entropy=self.entropy,
            directory=self.directory,
            results=self.record,
            watch=self.watch,
            park=self.park.put,
            lease_left=self.heartbeat.left,
            lease_least_s=self.settings.lease_left_s,
            breaker_changed=self._breaker_changed,
            aborted=self._aborted,
            delivers=frozenset(self.settings.lanes),
            stray=self.record.put_stray,
        )
        self.deliver.dispatch = self.record.dispatch = self.dispatch
        self.record.settled = self._recorded
        self.record.hungry = self.park.hungry
        self.park.deliver, self.park.claim = self.deliver, self.claim
        self.handoff: Handoff | None = None
        if self._broker is not None and self._handing is not None:
            self.handoff = Handoff(
                **leasing,
                broker=self._broker,
                handing=self._handing,
                telemetry=self.telemetry,
                dispatch=self.dispatch,
                lanes=self.settings.lanes,
                node=node,
                claimed=self._claimed,
                fail=self._fail,
            )
        self.record.gone = self.park.gone = self.lost.let_go
        self.rescue = Rescue(
            **common,
            entropy=self.entropy,
            directory=self.directory,
            node=node,
            in_memory=self._in_memory,
            forgotten=self.lost.suspect,
            wake=self.wake,
            notify=self._notify,
        )
        self.accept = Accept(
            **leasing,
            entropy=self.entropy,
            directory=self.directory,
            dispatch=self.dispatch,
            node=node,
            reload=self.reload,
            fail=self._fail,
            hungry=self.park.hungry,
            left=lambda lane: self.neighbours.left(lane),
            send=None if self.handoff is None else self.handoff.send,
        )
        self.neighbours = Neighbours(
            **common,
            wakeups=self.wakeups,
            directory=self.directory,
            dispatch=self.dispatch,
            claim=self.claim,
            park=self.park,
            record=self.record,
            refresh=self._refresh,
            stands=self._breaker_stands,
        )
        self.record.goes_on = self.neighbours.goes_on
        self.share = None if self._health is None else self._together(self._health)
        self.prune = Prune(**common)
        self.leave = Leave(
            **common,
            directory=self.directory,
            accept=self.accept,
            claim=self.claim,
            park=self.park,
            dispatch=self.dispatch,
            deliver=self.deliver,
            record=self.record,
            node=node,
        )
        if self.handoff is not None:
            self.leave.before_burial = self.handoff.close

    def _together(self, health: Health) -> Share:
        self.directory.together = True
        share = Share(
            health=health,
            clock=self.clock,
            directory=self.directory,
            telemetry=self.telemetry,
            node=self.node,
            flights=lambda: self.deliver.flights,
            slots=self.settings.endpoint_slots,
            told=self.record.breaker_told,
            stands=self._breaker_stands,
        )
        self.deliver.turned, self.park.may_probe = share.turned, share.may_probe
        return share

    def node(self) -> bytes:
        return self._node_id

    # -- start and stop ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """Enter the book, bury what is dead, load the configuration, and begin."""
        await self.ledger.open(now=self.clock.now())
        await self._enter()
        await self.reload()
        for row in await self.ledger.breakers():
            self.directory.breaker(row.tenant, row.key, None).restore(row)
        self._running = True
        await self._count()
        if self.settings.lanes:
            await self.park.look()
            self._leasing = [self._spawn("claim", self.claim.run()), self._spawn("park", self.park.run())]
        if self.handoff is not None and self._handing is not None:
            await self._handing.prepare_handing()
            self._leasing += [self._spawn(name, loop) for name, loop in self.handoff.leasing()]
            self._tasks += [self._spawn(name, loop) for name, loop in self.handoff.keeping()]
        if self.share is not None:
            self._tasks.append(self._spawn("share", self.share.run()))
        self._tasks += self._leasing
        await self.wakeups.start(self.neighbours.heard)
        for name, loop in (
            ("heartbeat", self.heartbeat.run),
            ("lost", self.lost.run),
            ("prune", self.prune.run),
            ("look", self._look_for_ever),
        ):
            self._tasks.append(self._spawn(name, loop()))
        self.telemetry.fact("engine.started", node=ids.text(ids.NODE, self._node_id))

    def close_door(self) -> None:
        """Take no new events; what waits for its commit still gets its answer."""
        self.accept.closed = True

    async def stop(self) -> None:
        """Refuse new events, hand back what was not begun, let requests finish within the grace time, record
        them, and leave the book: what is still in flight then is freed as unknown."""
        if self.leave.begun:
            return
        self.leave.begin()
        self._running = False
        if self.handoff is not None:
            self.handoff.stop()
        if self.share is not None:
            self.share.stop()
        if self.failure is None:
            try:
                async with asyncio.timeout(self.settings.grace_s + STOP_S):
                    await self.leave.wind_down(self._leasing)
            except (LedgerError, TimeoutError) as error:
                self.telemetry.fact("engine.stop_failed", error=str(error) or "out of time")
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.deliver.halted = True
        for task in list(self._background):
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        self.neighbours.work()  # which was handed back
        await self.wakeups.close()
        if self._health is not None:
            await self._health.close()
        await self.transport.close()
        await self.ledger.close()
        self.telemetry.fact("engine.stopped")

    async def _enter(self) -> None:
        await self.heartbeat.ask_time()
        now = self.clock.now()
        former, self._node_id = self._node_id, ids.uuid7(now, self.entropy.bits(10))
        node = self._host.this_node(self._node_id, now=now)
        others = [other for other in await self.ledger.nodes() if other.id != node.id]
        await self.ledger.enter(node, now=now)
        dead = [o.id for o in others if self._sole or o.id == former or self._host.is_gone(o)]
        if dead:
            burial = await self.ledger.bury(dead, now=now)
            self.neighbours.work()
            self.telemetry.fact("nodes.buried", nodes=len(burial.nodes), freed=burial.freed)
        await self.heartbeat.beat()

    def _aborted(self, route: Route, delivery: Delivery, unknown: bool) -> None:
        """A request ended before its answer, by our own doing: shutdown, or a lease too short for its first byte."""
        if self.leave.begun:
            self.leave.aborted(route, delivery, unknown)
            return
        assert not unknown, "only a shutdown aborts what was begun"
        self.dispatch.paused = True  # the next beat resumes
        self.dispatch.push(route, delivery)

    # -- configuration ----------------------------------------------------------------------------------

    async def changed(self) -> None:
        """We have changed the configuration: bring it into memory, and let the other processes know."""
        await self.reload()
        self.neighbours.configuration()

    async def reload(self) -> None:
        """Bring the configuration in memory up to the book's version; a no-op when it is."""
        async with self._reloading:
            if await self.ledger.version() == self.directory.version:
                return
            gone = self.directory.load(await self.ledger.configuration())
        for route in gone:
            self._drop_route(route)
        for route in self.directory.routes.values():
            if route.takes is not None:
                self.park.put_queue(route)
            self.park.hungry(route)
            self.dispatch.welcome(route)  # it may have waited for a token of credentials that it has no more

    async def current(self) -> None:
        """Before refusing something on memory's word: make sure memory is the book's word."""
        await self.reload()

    def _refresh(self) -> None:
        """Another process may have changed the configuration: look, soon."""
        if not self._refreshing:
            self._refreshing = True
            self._do(self._reload_once())

    async def _reload_once(self) -> None:
        self._refreshing = False  # a hint that comes while we read asks for another look
        await self.reload()

    def endpoint_removed(self, endpoint: bytes) -> None:
        """Nothing to do beyond `changed`: kept apart so that the door says what it means."""
        self.wake()

    def wake(self) -> None:
        """There is due work: let everybody who delivers look for it now."""
        self.claim.wake()
        self.neighbours.work()

    def _target(self, endpoint: Endpoint) -> Target:
        return self.transport.stored(endpoint.url, tenant=endpoint.tenant, tls=endpoint.tls)

    def _drop_route(self, route: Route) -> None:
        for delivery in self.dispatch.drain(route):
            self.deliver.end_deleted(route, delivery)

    # -- what the door asks -----------------------------------------------------------------------------

    async def take(self, events: Sequence[EventIn], keys: Sequence[str | None]) -> list[Taken | Problem]:
        return await self.accept.take(events, keys)

    def now(self) -> int:
        return self.clock.now()

    @property
    def retention_ms(self) -> int:
        return int(self.settings.retention_events_s * 1000)

    def refuses(self, event: EventIn) -> Problem | None:
        return self.directory.refuses(event)

    def ready(self) -> str | None:
        """None where requests are welcome, else the reason."""
        if self.failure is not None:
            return self.failure
        if self.leave.begun or not self._running:
            return "not running"
        if self.heartbeat.left() < self.settings.lease_left_s:
            return "the ledger has not answered for too long: the lease is running out"
        return None

    def lanes(self) -> Sequence[int]:
        """Slots of each lane, in the order of `model.LANES`."""
        return [lane.slots for lane in self.dispatch.lanes]

    def breakers(self) -> Sequence[BreakerView]:
        """Every breaker that is open, half-open, or closed with calls counted."""
        return breaker_views(self.directory, self.clock.now())

    # -- wires between the parts ------------------------------------------------------------------------

    def _start_delivery(self, route: Route, delivery: Delivery, lane: Any) -> bool:
        if self.record.backlog >= self.settings.record_backlog:
            self.dispatch.paused = True
            self.dispatch.push_front(route, delivery)
            return False
        return self.deliver.start(route, delivery, lane)

    def _recorded(self) -> None:
        """A window of results is in the book: what waited for its memory may go on."""
        self.claim.recorded()
        if self.dispatch.spilled and self.dispatch.has_room():
            self.dispatch.spilled = False
            self.claim.wake()
        if (
            self.dispatch.paused
            and not self.leave.begun
            and self.record.backlog < self.settings.record_backlog // 2
        ):
            self._resume()

    def _beaten(self) -> None:
        if not self._sole:
            self._refresh()
        if self.dispatch.paused and not self.leave.begun:
            self._resume()

    def _resume(self) -> None:
        if (
            self.record.backlog < self.settings.record_backlog
            and self.heartbeat.left() >= self.settings.lease_left_s
        ):
            self.dispatch.paused = False
            self.dispatch.pump()

    def _may_claim(self) -> bool:
        if self.handoff is not None and not self.handoff.may_claim():
            return False  # the broker brings the work
        return self._running and not self.dispatch.paused and self.dispatch.has_room()

    def _claimed(self, deliveries: list[Delivery]) -> None:
        """Rows that the broker brought are leased."""
        self.claim.take(deliveries)
        self.dispatch.pump()

    def _breaker_changed(self, route: Route) -> None:
        """A breaker opened or closed by a call of ours: others may take back what is parked, as we may."""
        if route.breaker.is_closed:
            self.neighbours.closed(route)
        self._breaker_stands(route.breaker)

    def _breaker_stands(self, breaker: Breaker) -> None:
        """Every endpoint that shares it parks its queue, or may take back."""
        for other in self.directory.routes.values():
            if other.breaker is breaker:
                if other.takes is not None:
                    self.park.put_queue(other)
                else:
                    other.parked.update(BREAKER_REASONS)  # perhaps by processes that we know nothing of
                self.park.hungry(other)

    def _notify(self, notice: Notice) -> None:
        self.watch.noticed(notice.kind)
        self.telemetry.fact(
            notice.kind,
            tenant=notice.tenant,
            endpoint=None if notice.endpoint is None else ids.text(ids.ENDPOINT, notice.endpoint),
            delivery=None if notice.delivery is None else ids.text(ids.DELIVERY, notice.delivery),
            detail=notice.detail,
        )

    def _in_memory(self) -> set[bytes]:
        return in_memory(self.directory, self.deliver, self.claim, self.record, self.park, self.lost)

    def _orphaned(self, deliveries: list[Delivery]) -> None:
        """Claimed rows whose endpoint is gone: hand them back and let the book end them."""
        node, now = self._node_id, self.clock.now
        end = end_orphans(self.ledger, deliveries, node=node, now=now, behind=self._caught_up)
        self._do(self.lost.give_back(deliveries, end))

    async def _caught_up(self) -> None:
        await self.reload()
        self.claim.wake()

    def _hand_back(self, deliveries: list[Delivery]) -> None:
        work = self.ledger.release(deliveries, node=self._node_id, now=self.clock.now())
        self._do(self.lost.give_back(deliveries, work))

    def _others_died(self, nodes: list[bytes], judged: Mapping[bytes, int]) -> None:
        async def bury() -> None:
            burial = await self.rescue.bury(nodes, judged)
            self.telemetry.fact("nodes.buried", nodes=len(burial.nodes), freed=burial.freed)

        self._do(bury())

    def _fail(self, error: BaseException) -> None:
        """The ledger said no for good (broken), or this node was buried (begin again under a new id)."""
        if isinstance(error, NodeBuried) and self._running:
            if error.node == self._node_id and not self._reborn:  # of a former one was heard already
                self._reborn = True
                self._do(self._begin_again())
            return
        if self.failure is None:
            self.failure = str(error) or type(error).__name__
            self.telemetry.fact("engine.failed", error=self.failure)
        self.dispatch.paused = True
        self.failed.set()

    async def _begin_again(self) -> None:
        """Others judged this node dead and freed its work: forget it, and enter under a new id."""
        self.telemetry.fact("node.buried", node=ids.text(ids.NODE, self._node_id))
        self.dispatch.paused = True
        self.leave.forget()
        self.lost.forget()
        if self.handoff is not None:
            self.handoff.forget()
        self.heartbeat.restart()
        try:
            await self._enter()
        finally:
            self._reborn = False
        self._resume()
        self.claim.wake()

    async def _count(self) -> None:
        """What waits in the book, for metrics."""
        self.lane_counts = await self.ledger.lane_counts(now=self.clock.now())
        self.parked_counts = await self.ledger.parked_counts()

    async def _look_for_ever(self) -> None:
        while True:
            await self.clock.sleep(self.settings.look_s)
            await self._guarded(self._look())

    async def _look(self) -> None:
        await self.reload()
        if self.settings.lanes:
            if not self._sole and (self.share is None or self.share.is_away):
                await self.neighbours.learn_breakers()
            await self.park.look()
        await self.rescue.look()
        if self.handoff is not None:
            self.handoff.compare(self._in_memory())
        for look in self.looks:
            await look()
        await self._count()

    async def _guarded(self, work: Awaitable[None]) -> None:
        """Ledger trouble is met again by the next look."""
        try:
            await work
        except NodeBuried as error:
            self._fail(error)
        except LedgerUnavailable as error:
            self.telemetry.fact("ledger.away", error=str(error))

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        """Work that nobody waits for."""
        task = asyncio.get_running_loop().create_task(self._guarded(work))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A loop that runs for ever; if it ends with an error the engine has failed, visibly."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        task.add_done_callback(self._loop_ended)
        return task

    def _loop_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.telemetry.fact("loop.failed", loop=task.get_name(), error=repr(error))
            self._fail(error)
