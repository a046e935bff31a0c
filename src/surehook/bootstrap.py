"""Ties a server together: the one file, beside `maintenance.py`, that names concrete parts.

Read it from top to bottom: `serve` binds the port and runs one process or several; `_serve` builds one of them in
order, runs it until a signal, and tears down in the order that loses nothing: no new requests, no new events, queues
handed back, requests in flight finished within the grace time, results recorded, node evicted, file closed. The
functions below open one part each, in the order in which `_serve` asks for them.

Tests and the simulated world tie the same knot with other parts.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
from collections.abc import Iterator
from functools import partial

from surehook.config import Settings
from surehook.config.sharing import check_sharing
from surehook.core.errors import LedgerError, Problem, SettingsError
from surehook.delivery.caller_calls import BOUNDS
from surehook.delivery.engine import Engine
from surehook.delivery.managing import WholeLedger
from surehook.delivery.settings import EngineSettings
from surehook.delivery.slots import beyond
from surehook.host import process
from surehook.host.children import Child
from surehook.host.clock import SystemClock
from surehook.host.entropy import SystemEntropy
from surehook.host.listening import address, bind
from surehook.host.running import ending, farewell, run
from surehook.host.watchdog import watched
from surehook.outbox.relay import Relay
from surehook.ports.clock import Clock
from surehook.ports.handoff import Handing, LaneBroker
from surehook.ports.health import Health
from surehook.ports.outbox import RowStore
from surehook.ports.telemetry import Telemetry
from surehook.ports.transport import Transport
from surehook.ports.wakeups import NoWakeups, Wakeups
from surehook.processes import EXIT_FAILED, Started, run_processes
from surehook.unopened import unopened

# Almost everything on the hot path is freed by counting references; the collector only has to find the rest.
GC_THRESHOLDS = (50_000, 20, 100)


def serve(settings: Settings, *, started: Started, say_each: bool = False) -> int:
    """Run a server until SIGTERM or SIGINT; returns the exit status. With several processes the log says when one of them
    fails, and with `say_each` also each one that serves.

    Raises SettingsError where it cannot start as told (port taken, ledger locked or broken), LedgerFull on a full disk.
    """
    check_sharing(settings)
    bound = bind(settings.host, settings.port)
    try:
        if settings.processes == 1:
            return run(_serve(settings, bound, started))

        def serve_child(started: Started, child: Child) -> int:
            return run(_serve(settings, bound, started, child))

        return run_processes(settings, bound, serve_child, started=started, say_each=say_each)
    finally:
        bound.close()


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
    engine = Engine(
        ledger=ledger,
        transport=open_transport(settings, clock),
        clock=clock,
        entropy=SystemEntropy(),
        host=process.here(),
        telemetry=telemetry,
        settings=EngineSettings.of(settings),
        sole=settings.is_sqlite,
        wakeups=open_wakeups(settings, telemetry),
        health=open_health(settings),
        broker=broker,
        handing=handing,
    )
    # Before the endpoints are read, of which there may be a hundred thousand: the collector looks at them once, at the end.
    gc.set_threshold(*GC_THRESHOLDS)
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
        await asyncio.to_thread(_load_door)
        from surehook.api.problems import rendered
        from surehook.api.serving import open_door
        from surehook.callers import bounds
        from surehook.http_server.connections import Connections
        from surehook.http_server.server import HttpServer
        from surehook.observing import observers

        connections = Connections(bounds(settings, telemetry), telemetry)
        labels = {name: str(value) for name, value in always.items()}
        relay = open_outbox(settings, engine)
        watch = observers(engine, connections, telemetry, settings=settings, labels=labels, relay=relay)
        door = await open_door(
            engine,
            own_key=settings.api_key,
            traffic=watch.traffic,
            metrics=watch.metrics,
            metrics_open=settings.metrics_open,
            reasons=(watch.disk.reason,),
            role=settings.role,
            makes_key=settings.role != "worker" and (child is None or child.number == 0),
            sole=settings.is_sqlite,
        )
        server = HttpServer(door.app, connections, render=rendered, now=clock.now)
        stop.of(server)
        engine.loops.keep("pulse", watch.pulse.run)
        engine.loops.keep("callers", server.pass_time)
        if relay is not None:
            engine.loops.keep("outbox", relay.run)
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


def _load_door() -> None:
    """Import the modules of the door, which takes a while."""
    import surehook.api.serving
    import surehook.callers
    import surehook.http_server.server
    import surehook.observing  # noqa: F401


def open_ledger(settings: Settings) -> WholeLedger:
    """The ledger a database URL names."""
    if not settings.is_sqlite:
        with needs("database_url", "PostgreSQL", "asyncpg", "postgres"):
            from surehook.ledgers.postgres.ledger import PostgresLedger

        return PostgresLedger(settings.ledger_url)
    from surehook.ledgers.sqlite import SqliteLedger

    return SqliteLedger(
        str(settings.database_path),
        disk_floor_bytes=settings.disk_floor_mb << 20,
        beside=settings.outbox_table,
    )


def open_broker(settings: Settings, ledger: WholeLedger) -> tuple[LaneBroker | None, Handing | None]:
    """The broker that brings ready work to workers elsewhere, and the ledger's side of it."""
    if settings.broker_url is None:
        return None, None
    with needs("broker_url", "RabbitMQ", "aio-pika", "rabbitmq"):
        from surehook.lanes.rabbitmq import RabbitBroker
    from surehook.ledgers.postgres.ledger import PostgresLedger

    assert isinstance(ledger, PostgresLedger), "check_sharing lets no broker pass beside SQLite"
    name = f"surehook {settings.role}"
    return RabbitBroker(settings.broker_url, name=name, ledger=ledger.identity), ledger


def open_transport(settings: Settings, clock: Clock) -> Transport:
    """The wire client under the operator's rules. Raises SettingsError where certificates or proxy are unusable."""
    from surehook.wire.client import WireClient
    from surehook.wire.resolver import DnsResolver
    from surehook.wire.settings import WireSettings

    # Every slot of both lanes and beyond them, and the calls that callers may start; token fetches take the room of idle ones.
    slots = (settings.slots_first, settings.slots_retry)
    calls = sum(one + beyond(one) for one in slots) + sum(bounds.process for bounds in BOUNDS.values())
    wire = WireSettings.of(settings, calls=calls)
    return WireClient(clock=clock, resolver=DnsResolver(clock.boot), settings=wire)


def open_wakeups(settings: Settings, telemetry: Telemetry) -> Wakeups:
    """Hints between the processes on this ledger."""
    if settings.is_sqlite:
        return NoWakeups()
    from surehook.wakeups.postgres import PostgresWakeups

    return PostgresWakeups(settings.ledger_url, telemetry=telemetry)


def open_outbox(settings: Settings, engine: Engine) -> Relay | None:
    """The reader of an outbox in the ledger's own database, which publishes its rows; None: there is none for this process."""
    if settings.outbox_table is None or settings.role == "worker":
        return None
    from surehook.delivery.outbox_events import OutboxEvents

    return Relay(
        _rows(settings.outbox_table, settings, engine), OutboxEvents(engine), sleep=engine.clock.sleep,
        monotonic=engine.clock.boot, tell=lambda said: engine.telemetry.fact("outbox.said", detail=said),
        counts=True,
    )  # fmt: skip


def _rows(table: str, settings: Settings, engine: Engine) -> RowStore:
    if settings.is_sqlite:
        from surehook.inbox.sql import engines
        from surehook.outbox.stores import RowsInDatabase, RowsInThread

        rows = RowsInDatabase(
            engines.engine(settings.database_url), table=table, clock=lambda: engine.clock.now() / 1000
        )
        return RowsInThread(rows, sleep=engine.clock.sleep)
    from surehook.ledgers.postgres.outbox import PostgresOutbox

    return PostgresOutbox(settings.ledger_url, table, hinted=engine.peers.outbox_hinted, clock=engine.clock)


def open_health(settings: Settings) -> Health | None:
    """The store in which processes share what they know of endpoints; None: there is one process."""
    if settings.is_sqlite:
        return None
    if settings.redis_url is not None:
        with needs("redis_url", "Redis", "redis", "redis"):
            from surehook.health.redis import RedisHealth

        return RedisHealth(settings.redis_url)
    from surehook.health.ledger import LedgerHealth

    return LedgerHealth(settings.ledger_url)


@contextlib.contextmanager
def needs(key: str, what: str, library: str, extra: str) -> Iterator[None]:
    """Turn the missing library of an extra into a SettingsError. Any other missing module is a defect, and stays one."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != library.replace("-", "_"):
            raise
        raise SettingsError(
            key, f"{what} needs the library {library}", hint=f"pip install 'surehook[{extra}]'"
        ) from None
