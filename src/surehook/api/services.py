"""Everything behind the HTTP door that it needs.

`ManagementEngine` is the sender as far as the door sees it; `delivery.engine.Engine` satisfies it, and the tests of the
door hand in a small one of their own. `Services` holds it together with the keys and the management side's
background work. `start` it after the engine, `stop` it before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from surehook.api.auth import KeyRing
from surehook.api.list_turns import ListTurns
from surehook.api.traffic import Traffic
from surehook.api.turns import TurnScheduler
from surehook.core.steps import Steps
from surehook.delivery.chores import Chores
from surehook.delivery.managing import BreakerView, Manager
from surehook.delivery.replay import Replays
from surehook.delivery.shared import Shared
from surehook.ports.reading import LaneCount
from surehook.ports.telemetry import Telemetry

SCRAPES = b"/metrics"  # in the place of a key: all of them together are one caller


class Metrics(Protocol):
    async def rendering(self) -> Steps[bytes]:
        """The present values in the Prometheus text format, version 0.0.4, written in steps."""
        ...


class ManagementEngine(Manager, Protocol):
    """The sender, as the door sees it."""

    @property
    def telemetry(self) -> Telemetry: ...

    def look_after(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do this work every few seconds, among the engine's own regular work."""
        ...

    def ready(self) -> str | None:
        """The reason not to send requests here, in a few words; None if they are welcome (ledger reachable, lease held)."""
        ...

    def warning(self) -> str | None:
        """A condition that an operator should look at although requests are welcome (a lane that nobody serves), or None."""
        ...

    def lanes(self) -> Sequence[int]:
        """Slots of each lane, in the order of `model.LANES`."""
        ...

    async def lane_counts(self) -> Sequence[LaneCount]:
        """Waiting deliveries by lane; as of the last count where there are many."""
        ...

    async def parked_counts(self) -> Mapping[tuple[bytes, str], int]:
        """Parked deliveries by endpoint and reason; as of the last count where there are many."""
        ...

    def in_flight(self) -> Mapping[str, int]:
        """Requests of this process under way, by the lane's name."""
        ...

    def breakers(self) -> Sequence[BreakerView]:
        """Every breaker in memory that is not in its resting state: open, half-open, or closed with calls counted."""
        ...


class Services:
    """Handed to `app.build`."""

    def __init__(
        self,
        engine: ManagementEngine,
        keys: KeyRing,
        *,
        traffic: Traffic,
        metrics: Metrics,
        metrics_open: bool = False,
        reasons: Sequence[Callable[[], str | None]] = (),
    ) -> None:
        """`metrics_open`: serve /metrics without a key. `reasons`: each may give one why this server is not ready."""
        self.engine = engine
        self.keys = keys
        self.traffic = traffic
        self.metrics_open = metrics_open
        self._metrics = metrics
        self._reasons = (engine.ready, traffic.refusing, *reasons)
        self.turns = TurnScheduler(engine.clock.boot)
        self.lists = ListTurns()
        self.scrape = Shared(self._scrape)
        self.chores = Chores()
        self.replays = Replays(engine, self.chores)

    async def _scrape(self) -> bytes:
        """The answer of `/metrics`."""
        return await self.turns.run(SCRAPES, await self._metrics.rendering())

    def ready(self) -> str | None:
        """The reason why a publish would be refused now, in a few words, or None."""
        return next((reason for each in self._reasons if (reason := each()) is not None), None)

    async def start(self, *, resume: bool = True) -> None:
        """Read the keys; with `resume` continue the replays that a restart interrupted, which needs that no other process can
        be working on them. `replays.look` finds those that another process left."""
        await self.keys.load()
        if resume:
            await self.replays.resume()

    async def stop(self) -> None:
        """End the background work; the ledger knows how far it is."""
        await self.chores.stop()
