"""The sender as a whole: its parts, in the order in which they start and stop.

accept ──▶ ledger ──▶ dispatch ──▶ deliver ──▶ record ──▶ ledger
                         ▲            │
          claim ─────────┤            ├──▶ park ──▶ ledger
          park (back) ───┘            │
node keeps the lease and rescue what it holds true; prune forgets; loops keep all of them running;
`Engine` ties and tears down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from surehook.core import ids
from surehook.core.envelope import EventIn
from surehook.core.errors import LedgerError, NodeBuried, Problem
from surehook.core.model import Delivery, Endpoint, Notice
from surehook.delivery.accept import Accept
from surehook.delivery.around import Host
from surehook.delivery.board import breaker_views
from surehook.delivery.book_clock import BookClock
from surehook.delivery.breakers import UrlBreaker
from surehook.delivery.caller_calls import CallerCalls
from surehook.delivery.catching_up import CatchingUp
from surehook.delivery.claim import Claim
from surehook.delivery.closing import Closing
from surehook.delivery.cluster_health import ClusterHealth
from surehook.delivery.company import Company
from surehook.delivery.deliver import Deliver
from surehook.delivery.disk import is_short
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.endings import Endings
from surehook.delivery.handoff.office import Handoff
from surehook.delivery.known import in_memory
from surehook.delivery.leave import Leave
from surehook.delivery.loading import Loader
from surehook.delivery.looks import Looks
from surehook.delivery.loops import Loops
from surehook.delivery.lost import Lost
from surehook.delivery.managing import Book, BreakerView
from surehook.delivery.neighbours import Neighbours
from surehook.delivery.node import ThisNode
from surehook.delivery.orphans import Orphans
from surehook.delivery.outage import Outage
from surehook.delivery.park import Park
from surehook.delivery.record import Record
from surehook.delivery.request import static_heads
from surehook.delivery.rescue import Rescue
from surehook.delivery.routes import Directory, Route
from surehook.delivery.settings import EngineSettings
from surehook.delivery.share import Share
from surehook.delivery.slot_parts import SlotParts
from surehook.delivery.tokens import Tokens
from surehook.delivery.unfinalized import Unfinalized
from surehook.delivery.upkeep import Upkeep
from surehook.delivery.watch import Watch
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy
from surehook.ports.handoff import Broker, Handing
from surehook.ports.health import Health
from surehook.ports.ledger import Taken
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
        self.caller_calls = CallerCalls()
        self._sole = sole
        self._broker = broker
        self._handing = handing
        self._health = health
        self._leasing: list[asyncio.Task[None]] = []
        self.directory = Directory(
            make_target=self._target, make_heads=static_heads, slots=self.settings.endpoint_slots
        )
        self.outage = Outage(clock=self.clock, telemetry=telemetry)
        self.loops = Loops(clock=self.clock, telemetry=telemetry, outage=self.outage, fail=self._fail)
        self.tokens = Tokens(transport=transport, clock=clock, telemetry=telemetry, defect=self.loops.defect)
        self.upkeep = Upkeep(clock=self.clock, loops=self.loops)
        self.this_node = ThisNode(
            ledger=ledger,
            clock=self.clock,
            entropy=entropy,
            settings=self.settings,
            host=host,
            telemetry=telemetry,
            loops=self.loops,
            sole=sole,
            forget=self._forget,
            begun=self._begun_again,
            freed=self.wake,
            beaten=self._beaten,
        )
        self.node, self.heartbeat = self.this_node.id, self.this_node.heartbeat
        self.loader = Loader(
            registry=self.ledger,
            directory=self.directory,
            touched=self._touched,
            dropped=self._drop_route,
            settled=lambda: self.closing.settle(),
        )
        self.catching_up = CatchingUp(
            clock=clock, loops=self.loops, directory=self.directory, reload=self.loader.reload
        )
        self._build()

    def _build(self) -> None:
        common: dict[str, Any] = {"ledger": self.ledger, "clock": self.clock, "settings": self.settings}
        self.endings = Endings(self.ledger, self.directory, self.watch, self._notify)
        node = self.node
        self.record = Record(
            **common,
            entropy=self.entropy,
            sole=self._sole,
            node=node,
            changed=self._endpoints_changed,
            watch=self.watch,
            notify=self._notify,
            loops=self.loops,
        )
        self.dispatch = Dispatch(self.settings, self.directory, self._start_delivery, self.loops.defect)
        self.tokens.welcome = self.dispatch.welcome
        self.in_flight = self.dispatch.in_flight
        self.lost = Lost(**common, node=node, in_memory=self._in_memory, wake=self.wake)
        leasing: dict[str, Any] = {**common, "lost": self.lost}
        bringing: dict[str, Any] = {**leasing, "company": Company(part=self.settings.large_part)}
        self.park = Park(
            **leasing, directory=self.directory, dispatch=self.dispatch, node=node, loops=self.loops
        )
        self.claim = Claim(
            **bringing,
            directory=self.directory,
            dispatch=self.dispatch,
            node=node,
            park=self.park.put,
            orphan=self._orphaned,
            stray=self.record.put_stray,
            hand_back=self._hand_back,
            may_claim=self._may_claim,
            defect=self.loops.defect,
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
            defect=self.loops.defect,
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
            notify=self._notify,
        )
        self.accept = Accept(
            **bringing,
            entropy=self.entropy,
            directory=self.directory,
            dispatch=self.dispatch,
            node=node,
            reload=self.loader.reload,
            behind=self.catching_up.met,
            loops=self.loops,
            hungry=self.park.hungry,
            left=lambda lane: self.neighbours.left(lane),
            send=None if self.handoff is None else self.handoff.send,
        )
        self.neighbours = Neighbours(
            clock=self.clock,
            settings=self.settings,
            wakeups=self.wakeups,
            directory=self.directory,
            dispatch=self.dispatch,
            claim=self.claim,
            park=self.park,
            refresh=self.catching_up.soon,
            defect=self.loops.defect,
        )
        self.cluster_health = ClusterHealth(
            ledger=self.ledger, clock=self.clock, directory=self.directory, changed=self._breaker_heard
        )
        self.share = None if self._health is None else self._together(self._health)
        self.closing = Closing(
            clock=self.clock,
            directory=self.directory,
            record=self.record,
            share=self.share,
            changed=self._breaker_changed,
        )
        self.orphans = Orphans(
            ledger=self.ledger, clock=self.clock, directory=self.directory, endings=self.endings
        )
        self.record.goes_on, self.record.went_on = self.neighbours.goes_on, self.orphans.went_on
        self.this_node.buried = self.lost.freed = self.orphans.look_everywhere
        self.looks = Looks(
            **common,
            directory=self.directory,
            endings=self.endings,
            park=self.park,
            rescue=self.rescue,
            unfinalized=Unfinalized(
                ledger=self.ledger, clock=self.clock, entropy=self.entropy, notify=self._notify
            ),
            orphans=self.orphans,
            cluster=self.cluster_health,
            health=self.share,
            shared=not self._sole,
            node=node,
            notice=self.deliver.telling.of_age,
            noticed=self.watch.noticed,
            reload=self.loader.reload,
            telemetry=self.telemetry,
        )
        self.lane_counts, self.parked_counts = self.looks.lanes_now, self.looks.parked_now
        self.leave = Leave(
            **common,
            accept=self.accept,
            claim=self.claim,
            park=self.park,
            dispatch=self.dispatch,
            deliver=self.deliver,
            record=self.record,
            node=node,
            going_back=self.lost.going_back,
        )
        if self.handoff is not None:
            self.leave.before_burial = self.handoff.close

    def _together(self, health: Health) -> Share:
        self.directory.breakers.together = True
        share = Share(
            health=health,
            clock=self.clock,
            directory=self.directory,
            telemetry=self.telemetry,
            node=self.node,
            slots=SlotParts(
                directory=self.directory,
                flights=lambda: self.deliver.flights,
                slots=self.settings.endpoint_slots,
            ),
            told=self.record.breaker_told,
            cluster=self.cluster_health,
            opened=self._breaker_heard,
        )
        self.deliver.turned = share.turned
        self.park.asking.may_probe, self.park.hastened = share.may_probe, share.hastened
        return share

    # -- start and stop ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """Enter the book, bury what is dead, load the configuration, and begin."""
        await self.ledger.open(now=self.clock.now())
        await self.this_node.enter()
        stood = await self.ledger.breakers()
        await self.loader.reload()  # every endpoint by which one of them opened
        self.closing.restore(stood)
        self.this_node.running = True
        keep = self.loops.keep
        self.dispatch.paused = is_short(self.ledger)
        if self.settings.lanes:
            self._leasing = [keep("claim", self.claim.run)]
            await self.park.look()
            self._leasing.append(keep("park", self.park.run))
        if self.handoff is not None and self._handing is not None:
            await self._handing.prepare_handing()
            self._leasing += [keep(name, run) for name, run in self.handoff.leasing()]
            for name, run in self.handoff.keeping():
                keep(name, run)
        if self.share is not None:
            keep("share", self.share.run)
        await self.wakeups.start(self.neighbours.heard)
        keep("heartbeat", self.heartbeat.run)
        keep("lost", self.lost.run)
        self.looks.begin(self.upkeep)
        if self.handoff is not None:
            self.look_after("broker", self._compare_broker)
        self.telemetry.fact("engine.started", node=ids.text(ids.NODE, self.node()))

    def close_door(self) -> None:
        """Take no new events; what waits for its commit still gets its answer."""
        self.accept.closed = True

    async def stop(self) -> None:
        """Refuse new events, hand back what was not begun, let requests finish within the grace time, record
        them, and leave the book: what is still in flight then is freed as unknown."""
        if self.leave.begun:
            return
        self.leave.begin()
        self.this_node.running = False
        if self.handoff is not None:
            self.handoff.stop()
        if self.share is not None:
            self.share.stop()
        if self.failure is None:
            try:
                async with asyncio.timeout(self.settings.grace_s + STOP_S):
                    await self.leave.wind_down(self._leasing)
            except NodeBuried:  # by another node, which has freed all that was to be handed back
                self.telemetry.fact("node.buried", node=ids.text(ids.NODE, self.node()))
                self._forget()
            except (LedgerError, TimeoutError) as error:
                self.telemetry.fact("engine.stop_failed", error=str(error) or "out of time")
        await self.loops.stop()
        self.deliver.halted = True
        self.neighbours.work()  # which was handed back
        await self.wakeups.close()
        if self._health is not None:
            await self._health.close()
        await self.transport.close()
        await self.ledger.close()
        self.telemetry.fact("engine.stopped")

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
        await self.loader.reload()
        self.neighbours.configuration()

    async def current(self) -> None:
        """Before refusing something on memory's word: make sure memory is the book's word."""
        await self.loader.reload()

    def _touched(self, route: Route) -> None:
        """An endpoint was put in or changed: its queue is parked, or it may take back."""
        if route.is_quiet:
            return
        if route.takes is not None:
            self.park.put_queue(route)
        self.park.hungry(route)
        self.dispatch.welcome(route)  # it may have waited for a token of credentials that it has no more

    def _endpoints_changed(self) -> None:
        """The book has changed endpoints with our results."""
        self.loops.keep("reload after a change", self.changed)

    def endpoint_removed(self, endpoint: bytes) -> None:
        """Something may be left of it: the next look ends that."""
        self.orphans.went_on(endpoint)

    def probe_now(self, endpoint: bytes) -> None:
        route = self.directory.routes.get(endpoint)
        if route is None or route.breaker.is_closed:
            return
        self.park.probe_now(route.breaker)

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
    def failure(self) -> str | None:
        """Why this process should end; None while it need not."""
        return self.this_node.failure

    @property
    def failed(self) -> asyncio.Event:
        return self.this_node.failed

    @property
    def retention_ms(self) -> int:
        return int(self.settings.retention_events_s * 1000)

    def refuses(self, event: EventIn) -> Problem | None:
        return self.directory.refuses(event)

    def weight(self, event: EventIn) -> int:
        return self.directory.weight(event)

    def ready(self) -> str | None:
        """None where requests are welcome, else the reason."""
        if self.failure is not None:
            return self.failure
        if self.leave.begun or not self.this_node.running:
            return "not running"
        if self.heartbeat.left() < self.settings.lease_left_s:
            return "the ledger has not answered for too long: the lease is running out"
        if (silent := self.heartbeat.silent()) >= self.settings.silent_s:
            return f"the ledger has not answered for {silent:.0f} s"
        return None

    def warning(self) -> str | None:
        """What an operator should see to although requests are welcome; else None."""
        return self.looks.unserved.warning()

    def lanes(self) -> Sequence[int]:
        """Slots of each lane, in the order of `model.LANES`."""
        return [lane.slots for lane in self.dispatch.lanes]

    def breakers(self) -> Sequence[BreakerView]:
        """Every breaker that is open, half-open, or closed with calls counted."""
        return breaker_views(self.directory, self.clock.now())

    # -- wires between the parts ------------------------------------------------------------------------

    def _start_delivery(self, route: Route, delivery: Delivery, lane: Any) -> bool:
        if self.record.backlog >= self.settings.record_backlog and not route.gone:
            self.dispatch.paused = True
            self.dispatch.push_front(route, delivery)
            return False
        return self.deliver.start(route, delivery, lane)

    def _recorded(self) -> None:
        """A window of results is in the book: what waited for its memory may go on."""
        self.claim.freed()
        self.park.let_go()
        if (
            self.dispatch.paused
            and not self.leave.begun
            and self.record.backlog < self.settings.record_backlog // 2
        ):
            self._resume()

    def _beaten(self) -> None:
        self.outage.answered()
        if not self._sole:
            self.catching_up.soon()
        if is_short(self.ledger):
            self.dispatch.paused = True
        elif self.dispatch.paused and not self.leave.begun:
            self._resume()

    def _resume(self) -> None:
        if (
            self.record.backlog < self.settings.record_backlog
            and self.heartbeat.left() >= self.settings.lease_left_s
            and not is_short(self.ledger)
        ):
            self.dispatch.paused = False
            self.dispatch.pump()

    def _may_claim(self) -> bool:
        if self.handoff is not None and not self.handoff.may_claim():
            return False  # the broker brings the work
        return self.this_node.running and not self.dispatch.paused and self.dispatch.memory.has_room()

    def _claimed(self, deliveries: list[Delivery]) -> None:
        """Rows that the broker brought are leased."""
        self.claim.take(deliveries)
        self.dispatch.pump()

    def _breaker_changed(self, breaker: UrlBreaker, endpoint: bytes) -> None:
        """A breaker opened or closed by a call of ours: others may take back what is parked, as we may."""
        if breaker.is_closed:
            self.neighbours.closed(endpoint)
        self.park.heed(breaker)

    def _breaker_heard(self, breaker: UrlBreaker) -> None:
        """Others opened, closed or hastened it, or all together did."""
        if breaker.is_unheeded:
            self.closing.close(breaker)
        else:
            self.park.heed(breaker)

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
        return in_memory(self.dispatch.memory, self.deliver, self.claim, self.record, self.park, self.lost)

    def _orphaned(self, deliveries: list[Delivery]) -> None:
        """Claimed rows whose endpoint is gone: hand them back and let the book end them."""
        end = self.orphans.end_claimed(
            deliveries, node=self.node(), behind=self._caught_up, known=self.claim.known
        )
        self.loops.do("end orphans", lambda: self.lost.give_back(deliveries, end))

    async def _caught_up(self) -> None:
        await self.loader.reload()
        self.claim.wake()

    def _hand_back(self, deliveries: list[Delivery]) -> None:
        work = self.orphans.hand_back(deliveries, node=self.node())
        self.loops.do("hand back", lambda: self.lost.give_back(deliveries, work))

    def _fail(self, error: BaseException) -> None:
        """What no loop can mend: this node was buried, or the process should end."""
        self.this_node.fail(error)
        self.dispatch.paused = self.dispatch.paused or self.failure is not None

    def _forget(self) -> None:
        """This node was buried, and what it has in memory belongs to others now."""
        self.dispatch.paused = True
        self.leave.forget()
        self.lost.forget()
        if self.handoff is not None:
            self.handoff.forget()

    def _begun_again(self) -> None:
        self._resume()
        self.claim.wake()

    def look_after(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """One more thing to look at, of somebody else's."""
        self.upkeep.add(name, self.settings.look_s, work)

    async def _compare_broker(self) -> None:
        assert self.handoff is not None
        self.handoff.compare(self._in_memory())
