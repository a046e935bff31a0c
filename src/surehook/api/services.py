"""What the HTTP door needs of the house behind it.

`Engine` is the sender as far as the door sees it; `delivery.engine.Engine` satisfies it, and the tests of the
door hand in a small one of their own. `Services` holds it together with the keys and the management side's
background work. `start` it after the engine, `stop` it before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from surehook.api.auth import Keys
from surehook.api.traffic import Traffic
from surehook.api.turns import Turns
from surehook.core.steps import Steps
from surehook.delivery.chores import Chores
from surehook.delivery.managing import BreakerView, Manager
from surehook.delivery.outage import Outage
from surehook.delivery.replay import Replays
from surehook.delivery.shared import Shared
from surehook.ports.reading import LaneCount
from surehook.ports.telemetry import Telemetry

SCRAPES = b"/metrics"  # in the place of a key: all of them together are one caller


class Metrics(Protocol):
    async def rendering(self) -> Steps[bytes]:
        """What there is now in the Prometheus text format, version 0.0.4, to be written in steps."""
        ...


class Engine(Manager, Protocol):
    """The sender, as the door sees it."""

    @property
    def metrics(self) -> Metrics: ...

    @property
    def telemetry(self) -> Telemetry: ...

    @property
    def outage(self) -> Outage: ...

    def look_after(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do it from time to time, some seconds apart, as the engine does what it looks at itself."""
        ...

    def ready(self) -> str | None:
        """None where requests are welcome (ledger reachable, lease held), else the reason in a few words."""
        ...

    def warning(self) -> str | None:
        """What an operator should see to although requests are welcome (a lane that nobody serves); else None."""
        ...

    def lanes(self) -> Sequence[int]:
        """Slots of each lane, in the order of `model.LANES`."""
        ...

    async def lane_counts(self) -> Sequence[LaneCount]:
        """What waits where; where that is much, as it was counted last."""
        ...

    async def parked_counts(self) -> Mapping[tuple[bytes, str], int]:
        """What is parked, by endpoint and reason; where that is much, as it was counted last."""
        ...

    def in_flight(self) -> Mapping[str, int]:
        """Requests of this process under way, by the lane's name."""
        ...

    def breakers(self) -> Sequence[BreakerView]:
        """Every breaker in memory that is not in its resting state: open, half-open, or closed with calls counted."""
        ...


class Services:
    """Handed to `app.build`."""

    def __init__(self, engine: Engine, keys: Keys, *, metrics_open: bool = False) -> None:
        """`metrics_open`: serve /metrics without a key."""
        self.engine = engine
        self.keys = keys
        self.metrics_open = metrics_open
        self.turns = Turns(engine.clock.boot)
        self.scrape = Shared(self._scrape)
        self.chores = Chores()
        self.replays = Replays(engine, self.chores)
        self.traffic = Traffic(clock=engine.clock, telemetry=engine.telemetry, outage=engine.outage)
        self.reasons: list[Callable[[], str | None]] = [engine.ready, self.traffic.refusing]

    async def _scrape(self) -> bytes:
        """What `/metrics` answers with."""
        return await self.turns.run(SCRAPES, await self.engine.metrics.rendering())

    def ready(self) -> str | None:
        """None where a publish would be taken, else the reason in a few words."""
        return next((reason for each in self.reasons if (reason := each()) is not None), None)

    async def start(self, *, resume: bool = True) -> None:
        """Read the keys, and (`resume`: no other process can be walking them) go on with the replays that a restart
        interrupted. What another process left is found by `replays.look`."""
        await self.keys.load()
        if resume:
            await self.replays.resume()

    async def stop(self) -> None:
        """End the background work; what it was about stands in the book."""
        await self.chores.stop()
