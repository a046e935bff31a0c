"""Several engines on one memory ledger in virtual time: each a node with a role, a clock and a host of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from lab.sim.clock import SimClock
from lab.sim.entropy import Seed, SimEntropy
from lab.sim.loop import SimLoop, run
from lab.wakeups import Hub
from surehook.core.model import FIRST, RETRY, NodeRow, Tenant
from surehook.delivery.engine import Engine
from surehook.delivery.settings import EngineSettings
from tests.delivery.house import TENANT, Facts, House, Receivers

T = TypeVar("T")

API = {"lanes": ()}
WORKER = {"accepts": False}
FIRST_ONLY = {"accepts": False, "lanes": (FIRST,)}
RETRY_ONLY = {"accepts": False, "lanes": (RETRY,)}
ALL: dict[str, Any] = {}


class Place:
    """A process on a machine of its own, which nobody else can look at."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.gone: set[str] = set()  # machines whose processes are known to be gone

    def this_node(self, node_id: bytes, *, now: int) -> NodeRow:
        return NodeRow(id=node_id, host=self.name, boot_id="boot", pid=1, started_at=now)

    def is_gone(self, node: NodeRow) -> bool:
        return node.host in self.gone


class Town(House):
    """Engines by name. `house.engine` is the first; each has receivers of its own, so that one sees who sent what."""

    def __init__(
        self, loop: SimLoop, roles: dict[str, dict[str, Any]], settings: dict[str, Any], health: Any = None
    ) -> None:
        self._loop = loop
        self._common = settings
        self.hub = Hub()
        self.places: dict[str, Place] = {}
        self.clocks: dict[str, SimClock] = {}
        self.sent: dict[str, Receivers] = {}
        self.engines: dict[str, Engine] = {}
        self.hears = True  # whether hints are carried
        self.health = health  # makes a node's door to what all nodes know together
        super().__init__(loop, EngineSettings(**settings))
        self.ledger.clock = self.clock.now
        for name, role in roles.items():
            self.make(name, role)
        self.engine = next(iter(self.engines.values()))

    def another(self) -> Engine:
        return None  # type: ignore[return-value]  # made by name

    def make(self, name: str, role: dict[str, Any], *, offset_ms: int = 0) -> Engine:
        """A fresh process of that name, not yet started; its wall clock is wrong by so much."""
        self.places[name] = Place(name)
        self.clocks[name] = SimClock(self._loop, offset_ms=offset_ms)
        self.sent[name] = Receivers()
        self.sent[name].scripts = self.receivers.scripts
        settings = EngineSettings(**{**self._common, **role})
        self.engines[name] = Engine(
            ledger=self.ledger, transport=self.sent[name], clock=self.clocks[name],
            entropy=SimEntropy(Seed(len(self.engines)).stream(name)), host=self.places[name],
            telemetry=Facts(), settings=settings, sole=False, wakeups=self.hub.member() if self.hears else None,
            health=None if self.health is None else self.health(),
        )  # fmt: skip
        return self.engines[name]

    async def open(self) -> None:
        await self.ledger.add_tenant(Tenant(TENANT, TENANT, False, self.clock.now()))
        for engine in self.engines.values():
            await engine.start()

    def calls(self, name: str) -> int:
        return len(self.sent[name].calls)


def in_town(
    story: Callable[[Town], Awaitable[T]],
    *,
    seed: int = 0,
    hears: bool = True,
    settings: dict[str, Any] | None = None,
    stops: bool = True,
    health: Callable[[], Any] | None = None,
    **roles: dict[str, Any],
) -> T:
    """Run a story over engines of these names and roles; afterwards all stop, and their memory must be empty."""

    async def main() -> T:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        town = Town(loop, roles, settings or {}, health)
        if not hears:
            town.hub.members = _Deaf()
        await town.open()
        result = await story(town)
        if stops:
            for engine in town.engines.values():
                await engine.stop()
                assert engine.dispatch.memory.held == 0, "every delivery that memory held was let go"
        return result

    return run(main(), seed=seed)


class _Deaf(list[Any]):
    """A hub in which nobody hears anything."""

    def append(self, member: Any) -> None: ...
