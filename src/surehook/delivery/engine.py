"""The sender as a whole: it starts and stops its parts (`parts.py`), and answers the door."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from surehook.core import ids
from surehook.core.envelope import EventIn
from surehook.core.errors import LedgerError, NodeEvicted, Problem
from surehook.delivery.breaker_board import breaker_views
from surehook.delivery.endpoint_state import UrlBreaker
from surehook.delivery.managing import BreakerView
from surehook.delivery.parts import Parts
from surehook.ports.ledger import Taken
from surehook.ports.reading import LaneCount

STOP_S = 5.0  # beyond the grace time a shutdown may take this long to write what it knows


class Engine(Parts):
    """Start it, use `accept`, stop it."""

    _leasing: Sequence[asyncio.Task[None]] = ()  # the loops that lease rows

    # -- start and stop ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """Enter the ledger, evict what is dead, load the configuration, and begin."""
        keep = self.loops.keep
        await self.ledger.open(now=self.clock.now())
        await self.membership.enter()
        keep("membership", self.membership.run)
        stood = await self.ledger.breakers()
        await self.loader.reload()  # every endpoint by which one of them opened
        self.breaker_changes.restore(stood)
        self.node.begin_running()
        keep("dispatch", self.pump.run)
        keep("pausing", self.pausing.run)
        keep("failure", self.pausing.after_failure)
        keep("reload", self.catching_up.follow)
        keep("catch up", self.catching_up.catch_up)
        self.pausing.look()
        leasing: list[asyncio.Task[None]] = []
        self._leasing = leasing
        if self.settings.lanes:
            leasing.append(keep("claim", self.claim.run))
            await self.unpark.look()
            leasing.append(keep("park", self.unpark.run))
        if self.handoff is not None:
            await self.handoff.prepare()
            leasing += [keep(name, run) for name, run in self.handoff.leasing()]
            for name, run in self.handoff.keeping():
                keep(name, run)
        if self.cluster_health is not None:
            keep("share", self.cluster_health.run)
        await self.wakeups.start(self.peers.heard)
        keep("heartbeat", self.heartbeat.run)
        keep("lost", self.reconciler.run)
        self.looks.begin(self.upkeep)
        if self.handoff is not None:
            self.look_after("broker", self._compare_broker)
        self.telemetry.fact("engine.started", node=ids.text(ids.NODE, self.node.id))

    def close_door(self) -> None:
        """Take no new events; what waits for its commit still gets its answer."""
        self.accept.close()

    async def stop(self) -> None:
        """Refuse new events, hand back what was not begun, let requests finish within the grace time, record
        them, and leave the ledger: what is still in flight then is freed as unknown."""
        if self.shutdown.begun:
            return
        self.shutdown.begin()
        if self.failure is None:
            try:
                async with asyncio.timeout(self.settings.grace_s + STOP_S):
                    await self.shutdown.wind_down(self._leasing)
            except NodeEvicted:  # by another node, which has freed all that was to be handed back
                self.telemetry.fact("node.evicted", node=ids.text(ids.NODE, self.node.id))
                self.shutdown.forget()
            except (LedgerError, TimeoutError) as error:
                self.telemetry.fact("engine.stop_failed", error=str(error) or "out of time")
        await self.loops.stop()
        self.deliver.halt()
        self.peers.work()  # which was handed back
        await self.wakeups.close()
        if self.cluster_health is not None:
            await self.cluster_health.close()
        await self.transport.close()
        await self.ledger.close()
        self.telemetry.fact("engine.stopped")

    # -- configuration ----------------------------------------------------------------------------------

    async def changed(self) -> None:
        """We have changed the configuration: bring it into memory, and let the other processes know."""
        await self.loader.reload()
        self.peers.configuration()

    async def current(self) -> None:
        """Before refusing something on memory's word: make sure memory is the ledger's word."""
        await self.loader.reload()

    def endpoint_removed(self, endpoint: bytes) -> None:
        """Something may be left of it: the next look ends that."""
        self.unknown_endpoints.removed(endpoint)

    def probe_now(self, endpoint: bytes) -> None:
        route = self.directory.routes.get(endpoint)
        if route is not None and not route.breaker.is_closed:
            self.breaker_changes.probe_now(route.breaker)

    def close_breaker(self, breaker: UrlBreaker) -> None:
        """A person says that its receiver is well."""
        self.breaker_changes.by_hand(breaker)

    def wake(self) -> None:
        """There is due work: let everybody who delivers look for it now."""
        self.claim_looks.wake()
        self.peers.work()

    # -- what the door asks -----------------------------------------------------------------------------

    async def take(self, events: Sequence[EventIn], keys: Sequence[str | None]) -> list[Taken | Problem]:
        return await self.accept.take(events, keys)

    def now(self) -> int:
        return self.clock.now()

    @property
    def failure(self) -> str | None:
        """Why this process should end; None while it need not."""
        return self.node.failure

    @property
    def failed(self) -> asyncio.Event:
        return self.node.failed

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
        if not self.node.running:
            return "not running"
        if not self.node.may_send():
            return "the ledger has not answered for too long: the lease is running out"
        if (silent := self.node.silent()) >= self.settings.silent_s:
            return f"the ledger has not answered for {silent:.0f} s"
        return None

    def warning(self) -> str | None:
        """Sentence about trouble that an operator should see to although requests are welcome; else None."""
        return self.looks.unserved.warning()

    async def lane_counts(self) -> Sequence[LaneCount]:
        """Count of waiting deliveries by lane; of very many as of the last count."""
        return await self.looks.lanes_now()

    async def parked_counts(self) -> dict[tuple[bytes, str], int]:
        """Count of parked deliveries by endpoint and reason; of very many as of the last count."""
        return await self.looks.parked_now()

    def in_flight(self) -> dict[str, int]:
        """Requests of this process under way, by the lane's name."""
        return self.dispatch.in_flight()

    def lanes(self) -> Sequence[int]:
        """Slots of each lane, in the order of `model.LANES`."""
        return [lane.slots for lane in self.dispatch.lanes]

    def breakers(self) -> Sequence[BreakerView]:
        """Every breaker that is open, half-open, or closed with calls counted."""
        return breaker_views(self.directory, self.clock.now())

    # -- looks of others ----------------------------------------------------------------------------------

    def look_after(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """One more thing to look at, of somebody else's."""
        self.upkeep.add(name, self.settings.look_s, work)

    async def _compare_broker(self) -> None:
        assert self.handoff is not None
        self.handoff.compare(self.reconciler.in_memory())
