"""The production server on simulated ports: the same knot as `bootstrap` ties, with the world's ends.

Nothing of the server is replaced but what touches the world: clock, entropy, the dialer under the wire
client, the resolver, who the process is, where facts go. The ledger is the real one behind `SimLedger`.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from lab.ledger.ledger import MemoryLedger
from lab.sim.dialer import SimDialer
from lab.sim.entropy import SimEntropy
from lab.sim.ledger import SimLedger
from lab.sim.loop import Process
from lab.sim.marked import MarkedLedger
from lab.sim.node import Machine, sim_host
from lab.sim.resolver import SimResolver
from lab.sim.trace import Trace
from lab.sim.verdicts import Overheard
from lab.sim.wakeups import SimWakeups
from lab.sim.world import NETWORK, World
from surehook.core import signature
from surehook.core.envelope import EventIn
from surehook.core.errors import Problem
from surehook.core.model import FIRST, RETRY
from surehook.delivery import deliveries, endpoints, tenants
from surehook.delivery.chores import Chores
from surehook.delivery.engine import Engine
from surehook.delivery.replay import Replays
from surehook.delivery.settings import EngineSettings
from surehook.ports.ledger import Taken
from surehook.wire.client import WireClient
from surehook.wire.settings import WireSettings

_TLS = ssl.create_default_context()  # never used to encrypt: the simulated dialer does no TLS


# Nobody reads metrics in a world: counting each second would take a third of its time.
COUNTS: dict[str, Any] = {"count_s": 10.0}

# What a machine does, as settings of its engine.
ROLES: dict[str, dict[str, Any]] = {
    "all": {},
    "api": {"lanes": ()},
    "worker": {"accepts": False},
    "first": {"accepts": False, "lanes": (FIRST,)},
    "retry": {"accepts": False, "lanes": (RETRY,)},
}


class Facts:
    """`ports.telemetry.Telemetry` into the trace."""

    def __init__(self, trace: Trace, process: Process, find: Callable[[str], None]) -> None:
        """`find` is told of defects, which no fault of a world excuses."""
        self._trace = trace
        self._process = process
        self._find = find

    def fact(self, name: str, **fields: Any) -> None:
        if self._process.alive:
            said = " ".join(f"{key}={value}" for key, value in fields.items() if value is not None)
            self._trace.note(f"fact-{name}", f"{self._process.name} {said}")
            if name == "loop.failed":
                self._find(f"{self._process.name}: {fields['loop']} met {fields['error']}")


class Server:
    """One process's server: start and stop as `serve` does, and the operations behind the HTTP door."""

    def __init__(self, engine: Engine, *, sole: bool, walks: bool) -> None:
        self.engine = engine
        self.ledger = engine.ledger
        self.failed = engine.failed
        self._chores = Chores()
        self._replays = Replays(engine, self._chores)
        self._sole, self._walks = sole, walks

    @property
    def failure(self) -> str | None:
        return self.engine.failure

    async def start(self) -> None:
        await self.engine.start()
        if self._walks:
            if self._sole:
                await self._replays.resume()
            self.engine.look_after("replays", self._replays.look)

    async def stop(self) -> None:
        self.engine.close_door()
        await self._chores.stop()
        await self.engine.stop()

    async def take(self, events: Any, keys: Any) -> Any:
        return await self.engine.take(events, keys)

    async def publish(self, event: EventIn) -> Taken | Problem:
        """One event as the door takes it: what memory refuses is looked at with what the ledger says now."""
        if self.engine.refuses(event) is not None:
            await self.engine.current()
            refusal = self.engine.refuses(event)
            if refusal is not None:
                return refusal
        (answer,) = await self.engine.take((event,), (None,))
        return answer

    async def change_tenant(self, tenant: str, changes: Mapping[str, Any]) -> None:
        await tenants.change(self.engine, tenant, changes)

    async def change_endpoint(self, endpoint: bytes, changes: Mapping[str, Any]) -> None:
        await endpoints.change(self.engine, self._chores, endpoint, changes)

    async def delete_endpoint(self, endpoint: bytes) -> None:
        await endpoints.remove(self.engine, self._chores, endpoint)

    async def rotate_secret(self, endpoint: bytes, overlap_s: int = endpoints.OVERLAP_S) -> str:
        _, secret = await endpoints.rotate_secret(self.engine, endpoint, overlap_s=overlap_s)
        return signature.write_secret(secret.kind, secret.material)

    async def resend(self, delivery: bytes) -> None:
        await deliveries.resend(self.engine, delivery)

    async def replay(self, tenant: str) -> None:
        await self._replays.begin({"tenant": tenant}, dry_run=False)

    async def cancel(self, delivery: bytes) -> None:
        await deliveries.cancel(self.engine, delivery)


def assemble(world: World, machine: Machine, process: Process, ledger: SimLedger) -> Server:
    """A server for a fresh process of `machine`."""
    chance = world.seed.stream
    clock = machine.clock
    transport = WireClient(
        clock=clock,
        resolver=SimResolver(world.names, world.loop, chance(f"resolver {process.name}")),
        dialer=SimDialer(world.network, process),
        settings=WireSettings(allow_http=True, allow_networks=(NETWORK,)),
        context=_TLS,
    )
    engine = Engine(
        ledger=ledger,  # type: ignore[arg-type]
        transport=Overheard(
            transport,
            world.verdicts,
            read=lambda: world.network.read,
            step=lambda: world.loop.steps,
            time=world.loop.time,
        ),
        clock=clock,
        entropy=SimEntropy(chance(f"entropy {process.name}")),
        telemetry=Facts(world.trace, process, world.book.find),
        host=sim_host(machine, world.options.places[machine.slot]),
        settings=EngineSettings(**COUNTS, **world.options.engine, **ROLES[world.options.roles[machine.slot]]),
        sole=world.options.nodes == 1,
        wakeups=SimWakeups(world.ears, process, world.loop, chance(f"wakeups {process.name}")),
        health=None if world.health is None else world.health.at(process),
        broker=None if world.broker is None else world.broker.at(process),
        handing=None if world.broker is None else ledger,  # type: ignore[arg-type]
    )
    return Server(
        engine,
        sole=world.options.nodes == 1,
        walks=world.options.roles[machine.slot] in ("all", "api"),
    )


class MemoryShelf:
    """One memory ledger for all processes of a world: it outlives them, as a database does. Several see it as they
    would see PostgreSQL."""

    def __init__(self) -> None:
        self._ledger = MemoryLedger()
        self._strays: dict[bytes, None] = {}

    def open(self, world: World) -> Any:
        if world.options.nodes == 1:
            return self._ledger
        self._ledger.clock = world.clock.now  # what a database of its own would show
        return MarkedLedger(
            self._ledger,
            clock=world.loop.time,
            commit=partial(world.storage.commit, world.loop),
            gone=0 if world.options.stalls is None else world.options.stalls.gone,
            strays=self._strays,
            tells=world.options.stalls is None or world.options.stalls.tells,
            transactions=world.storage.transactions,
        )


class SqliteShelf:
    """A SQLite file in `folder`; every process opens it anew, statements run inline."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "world.db"

    def open(self, world: World) -> Any:
        from surehook.ledgers.sqlite import SqliteLedger

        return SqliteLedger(str(self._path), inline=True)
