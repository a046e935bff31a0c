"""The parts of the sender, in the order in which they are made, each with what it is handed.

accept ──▶ ledger ──▶ dispatch ──▶ pump ──▶ deliver ──▶ record ──▶ ledger
                         ▲                    │
    claim ──▶ arrivals ──┤                    ├──▶ parking ──▶ ledger
    take back ──▶ arrivals                    │

A part is handed the parts that it calls, and each is made after those. Where two would need each other, a third knows
neither and both are handed it: queues (`dispatch`), what wants work (`refill`), what calls for a claim (`looks`), what is held
(`holdings`), what may be old (`staleness`), what others are to hear (`reports`), who we are (`node`).
"""

from __future__ import annotations

from surehook.delivery.accept import Accept
from surehook.delivery.arrivals import Arrivals
from surehook.delivery.breaker_changes import BreakerChanges
from surehook.delivery.caller_calls import CallerCalls
from surehook.delivery.catching_up import CatchingUp
from surehook.delivery.claim import Claim
from surehook.delivery.claim_looks import ClaimLooks
from surehook.delivery.cluster_health import ClusterHealth
from surehook.delivery.deliver import Deliver
from surehook.delivery.directory import Directory
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.endings import Endings
from surehook.delivery.evictions import Evictions
from surehook.delivery.following import ConfigurationConsequences
from surehook.delivery.handoff.handoff import Handoff
from surehook.delivery.handoff.opened import OpenedMessages
from surehook.delivery.health_reports import HealthReports
from surehook.delivery.heartbeat import Heartbeat
from surehook.delivery.holdings import Holdings
from surehook.delivery.lease_reconciler import LeaseReconciler
from surehook.delivery.ledger_clock import LedgerClock
from surehook.delivery.loading import Loader
from surehook.delivery.looks import Looks
from surehook.delivery.loops import Loops
from surehook.delivery.managing import WholeLedger
from surehook.delivery.membership import Membership
from surehook.delivery.node import Host, Node
from surehook.delivery.notices import Notices
from surehook.delivery.outage import Outage
from surehook.delivery.parking import Parking
from surehook.delivery.pausing import Pausing
from surehook.delivery.peers import Peers
from surehook.delivery.pump import Pump
from surehook.delivery.record import Record
from surehook.delivery.refill import Refill
from surehook.delivery.settings import EngineSettings
from surehook.delivery.shutdown import Shutdown
from surehook.delivery.slot_parts import SlotParts
from surehook.delivery.staleness import Staleness
from surehook.delivery.tenant_activity import TenantActivity
from surehook.delivery.tokens import Tokens
from surehook.delivery.unknown_endpoints import UnknownEndpoints
from surehook.delivery.unpark import Unpark
from surehook.delivery.upkeep import Upkeep
from surehook.delivery.watch import DeliveryCounts
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy
from surehook.ports.handoff import Handing, LaneBroker
from surehook.ports.health import Health
from surehook.ports.telemetry import Telemetry
from surehook.ports.transport import Transport
from surehook.ports.wakeups import NoWakeups, Wakeups


class Parts:
    """All of them, tied and not yet started."""

    def __init__(
        self,
        *,
        ledger: WholeLedger,
        transport: Transport,
        clock: Clock,
        entropy: Entropy,
        host: Host,
        telemetry: Telemetry,
        settings: EngineSettings | None = None,
        sole: bool = True,
        wakeups: Wakeups | None = None,
        broker: LaneBroker | None = None,
        handing: Handing | None = None,
        health: Health | None = None,
    ) -> None:
        """`sole`: the ledger admits one process at a time, so every other node in the ledger is dead (SQLite).
        `wakeups`: hints to and from the other processes on this ledger; None: nobody is told.
        `broker` and `handing`, the ledger's marks for it: hand ready work over to workers elsewhere.
        `health`: what all nodes know together of endpoints; None: each decides alone."""
        settings = settings or EngineSettings()
        boot_clock, clock = clock, LedgerClock(clock)
        self.ledger, self.transport, self.entropy, self.telemetry = ledger, transport, entropy, telemetry
        self.clock, self.settings = clock, settings
        self.wakeups = wakeups or NoWakeups()
        self.caller_calls = CallerCalls()
        self.watch = DeliveryCounts()
        has_broker = broker is not None and handing is not None

        # -- who we are, and what keeps all of it running
        self.node = node = Node(clock=clock, settings=settings, telemetry=telemetry)
        self.outage = Outage(clock=clock, telemetry=telemetry)
        self.loops = loops = Loops(clock=clock, telemetry=telemetry, outage=self.outage, node=node)
        self.upkeep = Upkeep(clock=clock, loops=loops)
        notices = Notices(watch=self.watch, telemetry=telemetry)

        # -- what is known, what waits, and what others are told: parts that call nobody who comes later
        staleness = Staleness()
        activity = TenantActivity(part=settings.large_part)
        reports = None if health is None else HealthReports()
        opened = OpenedMessages() if has_broker else None
        self.directory = directory = Directory(
            transport=transport, slots=settings.endpoint_slots, together=health is not None
        )
        self.dispatch = dispatch = Dispatch(settings, directory)
        refill = Refill(dispatch.memory)
        self.claim_looks = looks = ClaimLooks(clock=clock, settings=settings, node=node, dispatch=dispatch)
        holdings = Holdings(ledger=ledger, clock=clock, node=node, opened=opened)
        self.peers = peers = Peers(
            clock=clock, settings=settings, wakeups=self.wakeups, loops=loops, directory=directory,
            dispatch=dispatch, looks=looks, refill=refill, staleness=staleness,
        )  # fmt: skip
        self.endings = Endings(ledger=ledger, directory=directory, watch=self.watch, notices=notices)

        # -- from memory into the ledger
        self.record = record = Record(
            ledger=ledger, clock=clock, entropy=entropy, settings=settings, sole=sole, node=node,
            loops=loops, watch=self.watch, notices=notices, dispatch=dispatch, holdings=holdings,
            refill=refill, looks=looks, peers=peers, staleness=staleness,
        )  # fmt: skip
        self.parking = parking = Parking(
            ledger=ledger, clock=clock, settings=settings, node=node, loops=loops, dispatch=dispatch,
            holdings=holdings, refill=refill, looks=looks,
        )  # fmt: skip
        self.breaker_changes = breakers = BreakerChanges(
            ledger=ledger, clock=clock, directory=directory, refill=refill, parking=parking,
            record=record, peers=peers, reports=reports,
        )  # fmt: skip

        # -- out
        self.tokens = Tokens(
            transport=transport, clock=boot_clock, telemetry=telemetry, loops=loops, directory=directory,
            dispatch=dispatch,
        )  # fmt: skip
        self.deliver = deliver = Deliver(
            clock=clock, entropy=entropy, settings=settings, node=node, loops=loops, directory=directory,
            dispatch=dispatch, tokens=self.tokens, record=record, watch=self.watch, parking=parking,
            breakers=breakers,
        )  # fmt: skip
        self.pump = pump = Pump(dispatch, deliver)
        self.pausing = Pausing(
            ledger=ledger, settings=settings, node=node, dispatch=dispatch, pump=pump, record=record, refill=refill,
        )  # fmt: skip

        # -- the configuration
        self.loader = loader = Loader(
            registry=ledger,
            directory=directory,
            follower=ConfigurationConsequences(
                dispatch=dispatch, refill=refill, parking=parking, breakers=breakers
            ),
        )
        self.catching_up = CatchingUp(
            clock=boot_clock, directory=directory, loader=loader, staleness=staleness, peers=peers
        )
        self.unknown_endpoints = unknown_endpoints = UnknownEndpoints(
            ledger=ledger, clock=clock, node=node, loops=loops, directory=directory, loader=loader,
            endings=self.endings, holdings=holdings, looks=looks,
        )  # fmt: skip

        # -- in
        self.arrivals = arrivals = Arrivals(
            clock=clock, settings=settings, directory=directory, node=node, loops=loops,
            dispatch=dispatch, pump=pump, looks=looks, parking=parking, record=record, unknown_endpoints=unknown_endpoints,
            holdings=holdings,
        )  # fmt: skip
        self.handoff: Handoff | None = None
        if broker is not None and handing is not None and opened is not None:
            self.handoff = Handoff(
                broker=broker, ledger=ledger, handing=handing, clock=clock, settings=settings,
                telemetry=telemetry, dispatch=dispatch, pump=pump, node=node, arrivals=arrivals,
                holdings=holdings, opened=opened,
            )  # fmt: skip
        self.claim = Claim(
            ledger=ledger, clock=clock, settings=settings, directory=directory, node=node,
            dispatch=dispatch, pump=pump, looks=looks, arrivals=arrivals, holdings=holdings,
            activity=activity, handoff=self.handoff,
        )  # fmt: skip
        self.cluster_health: ClusterHealth | None = None
        if health is not None and reports is not None:
            self.cluster_health = ClusterHealth(
                health=health, clock=clock, telemetry=telemetry, node=node, directory=directory,
                record=record, reports=reports, breakers=breakers,
                slots=SlotParts( directory=directory, flights=deliver.flights, slots=settings.endpoint_slots ),
            )  # fmt: skip
        self.unpark = Unpark(
            ledger=ledger, clock=clock, settings=settings, node=node, loops=loops, directory=directory,
            dispatch=dispatch, pump=pump, deliver=deliver, arrivals=arrivals, parking=parking,
            refill=refill, holdings=holdings, breakers=breakers, health=self.cluster_health,
        )  # fmt: skip
        self.accept = Accept(
            ledger=ledger, clock=clock, entropy=entropy, settings=settings, node=node, loops=loops,
            directory=directory, loader=loader, staleness=staleness, dispatch=dispatch, pump=pump,
            holdings=holdings, refill=refill, peers=peers, activity=activity,
            send=None if self.handoff is None else self.handoff.send,
        )  # fmt: skip

        # -- what holds it true
        self.reconciler = LeaseReconciler(
            ledger=ledger, clock=clock, settings=settings, node=node, holdings=holdings,
            holders=(deliver, dispatch, arrivals.timers, record, parking), unknown_endpoints=unknown_endpoints, looks=looks,
            peers=peers,
        )  # fmt: skip
        self.looks = Looks(
            ledger=ledger, clock=clock, entropy=entropy, settings=settings, telemetry=telemetry,
            shared=not sole, node=node, directory=directory, loader=loader, endings=self.endings,
            notices=notices, watch=self.watch, telling=deliver.telling, unpark=self.unpark,
            unknown_endpoints=unknown_endpoints, reconciler=self.reconciler, breakers=breakers, health=self.cluster_health,
        )  # fmt: skip
        self.shutdown = Shutdown(
            ledger=ledger, clock=clock, settings=settings, node=node, dispatch=dispatch,
            holdings=holdings, accept=self.accept, claim=self.claim, unpark=self.unpark,
            arrivals=arrivals, parking=parking, deliver=deliver, record=record, handoff=self.handoff,
            health=self.cluster_health,
        )  # fmt: skip
        evictions = Evictions(
            ledger=ledger, clock=clock, telemetry=telemetry, loops=loops, unknown_endpoints=unknown_endpoints, looks=looks,
            peers=peers,
        )  # fmt: skip
        self.heartbeat = Heartbeat(
            ledger=ledger, clock=clock, settings=settings, sole=sole, node=node, host=host,
            evictions=evictions, outage=self.outage, pausing=self.pausing, staleness=staleness,
        )  # fmt: skip
        self.membership = Membership(
            ledger=ledger, clock=clock, entropy=entropy, telemetry=telemetry, host=host, sole=sole,
            node=node, heartbeat=self.heartbeat, evictions=evictions, shutdown=self.shutdown,
            pausing=self.pausing, looks=looks,
        )  # fmt: skip
