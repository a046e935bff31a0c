"""The one file that names concrete parts and ties them; tests and the simulated world tie the same knot with others.

`assemble` makes an engine from handed-in parts. `serve` makes the real ones from settings, binds the port,
runs until a signal, and tears down in the order that loses nothing: no new requests, no new events, queues
handed back, requests in flight finished within the grace time, results recorded, node buried, file closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from surehook.config import Settings
from surehook.core.errors import LedgerError, LedgerFull, Problem, SettingsError
from surehook.core.model import FIRST, RETRY, Lane
from surehook.delivery.around import Host
from surehook.delivery.caller_calls import BOUNDS
from surehook.delivery.engine import Engine
from surehook.delivery.managing import Book
from surehook.delivery.settings import EngineSettings
from surehook.delivery.slots import beyond
from surehook.host import process
from surehook.host.children import Child, Children
from surehook.host.clock import SystemClock
from surehook.host.entropy import SystemEntropy
from surehook.host.listening import address, bind
from surehook.host.running import ending, farewell, run
from surehook.host.watchdog import watched
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy
from surehook.ports.handoff import Broker, Handing
from surehook.ports.health import Health
from surehook.ports.telemetry import Telemetry
from surehook.ports.transport import Transport
from surehook.ports.wakeups import NoWakeups, Wakeups
from surehook.unopened import unopened

if TYPE_CHECKING:
    from surehook.api.serving import Door
    from surehook.http_server.server import HttpServer

Started = Callable[[str, str | None], None]

# Almost everything on the hot path is freed by counting references; the collector only has to find the rest.
GC_THRESHOLDS = (50_000, 20, 100)
EXIT_FAILED = 1
EXIT_UNUSABLE = 2  # a setting
BEAT_S = 1.0  # where nobody else waits for our beats
BEAT_SHARED_S = 0.3  # many looks within a lease: a dead node's work goes on within 16 s


def assemble(
    *,
    ledger: Book,
    transport: Transport,
    clock: Clock,
    entropy: Entropy,
    telemetry: Telemetry,
    host: Host | None = None,
    settings: EngineSettings | None = None,
    sole: bool = True,
    wakeups: Wakeups | None = None,
    health: Health | None = None,
    broker: Broker | None = None,
    handing: Handing | None = None,
) -> Engine:
    """An engine of the given parts, not yet started."""
    return Engine(
        ledger=ledger,
        transport=transport,
        clock=clock,
        entropy=entropy,
        host=host or process.here(),
        telemetry=telemetry,
        settings=settings,
        sole=sole,
        wakeups=wakeups,
        health=health,
        broker=broker,
        handing=handing,
    )


def engine_settings(settings: Settings) -> EngineSettings:
    """The engine's bounds out of the program's settings."""
    lanes: tuple[Lane, ...] = (FIRST, RETRY)
    if settings.role in ("api", "console"):
        lanes = ()
    elif settings.lane != "both":
        lanes = (FIRST,) if settings.lane == "first" else (RETRY,)
    return EngineSettings(
        lanes=lanes,
        accepts=settings.role in ("all", "api"),
        beat_s=BEAT_S if settings.is_sqlite else BEAT_SHARED_S,
        slots_first=settings.slots_first,
        slots_retry=settings.slots_retry,
        endpoint_slots=settings.endpoint_slots,
        memory_deliveries=settings.memory_deliveries,
        memory_bytes=settings.memory_mb << 20,
        waiting_events=settings.waiting_events,
        record_rows=settings.record_rows,
        record_window_s=settings.record_window_ms / 1000,
        grace_s=float(settings.grace_s),
        retention_events_s=settings.retention_days * 86_400.0,
        retention_bodies_s=settings.body_retention_days * 86_400.0,
    )


def open_ledger(settings: Settings) -> Book:
    """The ledger a database URL names."""
    if not settings.is_sqlite:
        with needs("database_url", "PostgreSQL", "asyncpg", "postgres"):
            from surehook.ledgers.postgres.ledger import PostgresLedger

        return PostgresLedger(settings.database_url)
    from surehook.ledgers.sqlite import SqliteLedger

    return SqliteLedger(str(settings.database_path), disk_floor_bytes=settings.disk_floor_mb << 20)


def back_up(settings: Settings, path: str) -> None:
    """Copy the ledger as of one instant, whether or not a server is on it. Raises Problem."""
    asyncio.run(open_ledger(settings).backup(path))


def migrate(settings: Settings) -> None:
    """Bring the ledger to the newest revision. Raises SettingsError while a server is on its file."""

    async def open_once() -> None:
        ledger = open_ledger(settings)
        await ledger.open(now=SystemClock().now())
        await ledger.close()

    asyncio.run(open_once())


def revisions(settings: Settings, *, to_serve: bool = False) -> tuple[str | None, str]:
    """The ledger's revision (None: no ledger yet) and the newest. Changes nothing; `to_serve` raises what a server would."""
    from surehook.ledgers.migrations.head import HEAD

    return _revision(settings, to_serve=to_serve), HEAD


def migration_plan(settings: Settings) -> tuple[str, ...]:
    """The statements that `migrate` would run, in one transaction. Changes nothing."""
    from surehook.ledgers.migrations.head import HEAD
    from surehook.ledgers.migrations.script import script

    current = _revision(settings)
    dialect = "sqlite" if settings.is_sqlite else "postgresql"
    return () if current == HEAD else script(current, dialect=dialect)


def _revision(settings: Settings, *, to_serve: bool = False) -> str | None:
    if not settings.is_sqlite:
        with needs("database_url", "PostgreSQL", "asyncpg", "postgres"):
            from surehook.ledgers.postgres.opening import look

        return asyncio.run(look(settings.database_url, to_serve=to_serve))
    from surehook.ledgers.sqlite.driver import Driver
    from surehook.ledgers.sqlite.opening import revision
    from surehook.ledgers.sqlite.session import Session

    if not settings.database_path.exists():
        return None
    session = Session(Driver(), str(settings.database_path))
    session.connect(("query_only = on",))
    try:
        return revision(session)
    finally:
        session.close()


def open_transport(settings: Settings, clock: Clock) -> Transport:
    """The wire client under the operator's rules. Raises SettingsError where certificates or proxy are unusable."""
    from surehook.wire.client import Client
    from surehook.wire.resolver import DnsResolver
    from surehook.wire.settings import Settings as WireSettings

    # Every slot of both lanes and beyond them, what callers may start, and token fetches; what is idle makes room.
    slots = (settings.slots_first, settings.slots_retry)
    places = sum(one + beyond(one) for one in slots) + sum(bounds.process for bounds in BOUNDS.values())
    wire = WireSettings(
        connections=max(WireSettings().connections, places + WireSettings().idle_connections),
        allow_http=settings.allow_http,
        allow_networks=settings.allow_networks,
        tenant_networks=settings.tenant_networks,
        deny_networks=settings.deny_networks,
        nat64_prefixes=settings.nat64_prefixes,
        own_hosts=frozenset(settings.own_hosts),
        ca_file=settings.ca_file,
        proxy=settings.proxy,
    )
    return Client(clock=clock, resolver=DnsResolver(clock.boot), settings=wire)


def open_wakeups(settings: Settings, telemetry: Telemetry) -> Wakeups:
    """How the processes on this ledger wake each other."""
    if settings.is_sqlite:
        return NoWakeups()
    from surehook.wakeups.postgres import PostgresWakeups

    return PostgresWakeups(settings.database_url, telemetry=telemetry)


def open_health(settings: Settings) -> Health | None:
    """Where the processes share what they know of endpoints; None: there is one process."""
    if settings.is_sqlite:
        return None
    if settings.redis_url is not None:
        with needs("redis_url", "Redis", "redis", "redis"):
            from surehook.health.redis import RedisHealth

        return RedisHealth(settings.redis_url)
    from surehook.health.ledger import LedgerHealth

    return LedgerHealth(settings.database_url)


@contextlib.contextmanager
def needs(key: str, what: str, library: str, extra: str) -> Iterator[None]:
    """Imports of a library that comes with an extra. What is missing beside it is a defect, and stays one."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != library.replace("-", "_"):
            raise
        raise SettingsError(
            key, f"{what} needs the library {library}", hint=f"pip install 'surehook[{extra}]'"
        ) from None


def open_broker(settings: Settings, ledger: Any) -> tuple[Broker | None, Handing | None]:
    """What brings ready work to workers elsewhere, and the ledger's side of it."""
    if settings.broker_url is None:
        return None, None
    with needs("broker_url", "RabbitMQ", "aio-pika", "rabbitmq"):
        from surehook.lanes.rabbitmq import RabbitBroker

    name = f"surehook {settings.role}"
    return RabbitBroker(settings.broker_url, name=name, ledger=ledger.identity), ledger


def check_sharing(settings: Settings) -> None:
    """Whether the work may be shared among processes as told. Raises SettingsError."""
    if settings.lane != "both" and settings.role != "worker":
        raise SettingsError(
            "lane", f"a process of role {settings.role} has both lanes or none", hint="--role worker --lane …"
        )
    if settings.is_sqlite and settings.broker_url is not None:
        raise SettingsError(
            "broker_url",
            "a broker brings work to other processes, and SQLite serves one process",
            hint="SUREHOOK_DATABASE_URL=postgresql://USER@HOST/DATABASE, or leave it out",
        )
    for name, alone in (("role", "all"), ("processes", 1), ("redis_url", None)):
        if settings.is_sqlite and getattr(settings, name) != alone:
            raise SettingsError(
                name,
                f"{settings.shown(name)} needs a ledger that processes can share, and SQLite serves one process",
                hint="SUREHOOK_DATABASE_URL=postgresql://USER@HOST/DATABASE, or leave it out",
            )


def serve(settings: Settings, *, started: Started, say_each: bool = False) -> int:
    """Run a server until SIGTERM or SIGINT; returns the exit status. Where there are several processes the log says
    what goes wrong with one, and with `say_each` each that serves.

    Raises SettingsError where it cannot start as told (port taken, ledger locked or broken), LedgerFull on a full disk.
    """
    check_sharing(settings)
    bound = bind(settings.host, settings.port)
    try:
        if settings.processes > 1:
            return _serve_together(settings, bound, started, say_each)
        return run(_serve(settings, bound, started))
    finally:
        bound.close()


def _serve_together(settings: Settings, bound: socket.socket, started: Started, say_each: bool) -> int:
    """A parent over several processes, each a server on the same socket. Raises the first one's SettingsError."""
    from surehook.telemetry.logging import configure

    say = configure(settings.log_level, settings.log_format, clock=SystemClock(), process="parent").say
    refused: list[SettingsError | LedgerFull] = []
    greeted = False

    def work(child: Child) -> int:
        def up(address: str, key: str | None) -> None:
            child.tell(up=True, key=key)

        try:
            return run(_serve(settings, bound, up, child))
        except SettingsError as error:
            child.tell(up=False, key=error.key, detail=error.detail, hint=error.hint)
            return EXIT_UNUSABLE
        except LedgerFull as error:
            child.tell(up=False, key="", detail=str(error), hint=None)
            return EXIT_FAILED

    def told(facts: dict[str, Any]) -> None:
        nonlocal greeted
        if not facts["up"]:
            if greeted:
                say(f"process {facts['process']} cannot start: {facts['key'] or 'ledger'}: {facts['detail']}")
                return
            key, detail = facts["key"], facts["detail"]
            refused.append(SettingsError(key, detail, hint=facts["hint"]) if key else LedgerFull(detail))
            parent.stop()
            return
        if not greeted:
            greeted = True
            started(address(settings.host, bound), facts["key"])
        if say_each:
            say(f"process {facts['process']} serves (pid {facts['pid']})")

    parent = Children(settings.processes, work, grace_s=float(settings.grace_s), told=told, say=say)
    status = parent.run()
    if refused:
        raise refused[0]
    return status


async def _serve(
    settings: Settings, bound: socket.socket, started: Started, child: Child | None = None
) -> int:
    """One process, which is a `child` where several share the socket."""
    from surehook.telemetry.logging import configure

    always = {} if child is None else {"process": child.number}
    clock = SystemClock()
    telemetry = configure(settings.log_level, settings.log_format, clock=clock, **always)
    ledger = open_ledger(settings)
    broker, handing = open_broker(settings, ledger)
    engine = assemble(
        ledger=ledger,
        transport=open_transport(settings, clock),
        clock=clock,
        entropy=SystemEntropy(),
        telemetry=telemetry,
        settings=engine_settings(settings),
        sole=settings.is_sqlite,
        wakeups=open_wakeups(settings, telemetry),
        health=open_health(settings),
        broker=broker,
        handing=handing,
    )
    gc.set_threshold(
        *GC_THRESHOLDS
    )  # before a hundred thousand endpoints are read: they are looked through once, at the end
    try:
        await engine.start()
    except Problem as problem:
        raise SettingsError("database_url", problem.detail, hint=problem.hint) from None
    except LedgerError as error:
        raise unopened(settings, ledger.room(), error) from None
    for weakness in getattr(engine.ledger, "warnings", ()):
        telemetry.fact("ledger.weak", detail=weakness)
    last_words = partial(telemetry.say, farewell(settings.grace_s))
    with watched(), ending(None, last_words) if child is None else ending(child.parent) as stop:
        # The door is a third of what a start has to load: the work that waits in the ledger does not wait for it.
        new_server, open_door, observe = await asyncio.to_thread(_load_door)
        door = await open_door(
            engine,
            own_key=settings.api_key,
            metrics_open=settings.metrics_open,
            role=settings.role,
            makes_key=settings.role != "worker" and (child is None or child.number == 0),
            sole=settings.is_sqlite,
        )
        server = new_server(door.app, settings, now=clock.now, telemetry=telemetry)
        stop.of(server)
        observe(engine, door.services, server, telemetry, settings=settings, always=always)
        gc.collect()
        gc.freeze()
        serving = asyncio.ensure_future(server.serve([bound]))
        failed = asyncio.ensure_future(engine.failed.wait())
        started(address(settings.host, bound), door.new_key)
        await asyncio.wait({serving, failed}, return_when=asyncio.FIRST_COMPLETED)
        engine.close_door()
        server.stop()
        await serving
        failed.cancel()
        await door.services.stop()
        await engine.stop()
    return EXIT_FAILED if engine.failure is not None else 0


def _load_door() -> tuple[Callable[..., HttpServer], Callable[..., Awaitable[Door]], Callable[..., None]]:
    from surehook.api.serving import open_door
    from surehook.callers import server
    from surehook.observing import observe

    return server, open_door, observe
