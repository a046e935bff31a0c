"""The one file that names concrete parts and ties them; tests and the simulated world tie the same knot with others.

`assemble` makes an engine from handed-in parts. `serve` makes the real ones from settings, binds the port,
runs until a signal, and tears down in the order that loses nothing: no new requests, no new events, queues
handed back, requests in flight finished within the grace time, results recorded, node buried, file closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

from surehook.config import Settings
from surehook.core.errors import LedgerError, Problem, SettingsError
from surehook.core.model import LANES
from surehook.delivery.engine import Engine
from surehook.delivery.managing import Book
from surehook.delivery.settings import EngineSettings
from surehook.host import process
from surehook.host.clock import SystemClock
from surehook.host.entropy import SystemEntropy
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy
from surehook.ports.telemetry import Telemetry
from surehook.ports.transport import Transport
from surehook.ports.wakeups import Wakeups
from surehook.telemetry.prometheus import PrometheusMetrics, Snapshot

Started = Callable[[str, str | None], None]

BACKLOG_CONNECTIONS = 2048  # connections the kernel may hold before we accept them
# A writer thread that needs the interpreter waits at most this long for the busy loop; the default of
# 5 ms is longer than a whole commit.
SWITCH_INTERVAL_S = 0.0005
# Almost everything on the hot path is freed by counting references; the collector only has to find the rest.
GC_THRESHOLDS = (50_000, 20, 100)
EXIT_FAILED = 1


def assemble(
    *,
    ledger: Book,
    transport: Transport,
    clock: Clock,
    entropy: Entropy,
    telemetry: Telemetry,
    host: Any = process,
    settings: EngineSettings | None = None,
    sole: bool = True,
    wakeups: Wakeups | None = None,
) -> Engine:
    """An engine of the given parts, not yet started."""
    return Engine(
        ledger=ledger,
        transport=transport,
        clock=clock,
        entropy=entropy,
        host=host,
        telemetry=telemetry,
        settings=settings,
        sole=sole,
        wakeups=wakeups,
    )


def engine_settings(settings: Settings) -> EngineSettings:
    """The engine's bounds out of the program's settings."""
    return EngineSettings(
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
    from surehook.ledgers.sqlite import SqliteLedger

    return SqliteLedger(str(settings.database_path), disk_floor_bytes=settings.disk_floor_mb << 20)


def back_up(settings: Settings, path: str) -> None:
    """Copy the ledger as of one instant, whether or not a server is on it. Raises Problem."""
    asyncio.run(open_ledger(settings).backup(path))


def migrate(settings: Settings) -> None:
    """Bring the ledger to the newest revision. Raises SettingsError while a server is on it."""

    async def open_once() -> None:
        ledger = open_ledger(settings)
        await ledger.open(now=SystemClock().now())
        await ledger.close()

    asyncio.run(open_once())


def revisions(settings: Settings) -> tuple[str | None, str]:
    """The ledger's revision (None: it does not exist yet, or is empty) and the newest one. Changes nothing."""
    from surehook.ledgers.migrations.head import HEAD
    from surehook.ledgers.sqlite.driver import Driver
    from surehook.ledgers.sqlite.opening import revision
    from surehook.ledgers.sqlite.session import Session

    if not settings.database_path.exists():
        return None, HEAD
    session = Session(Driver(), str(settings.database_path))
    session.connect(("query_only = on",))
    try:
        return revision(session), HEAD
    finally:
        session.close()


def open_transport(settings: Settings, clock: Clock) -> Transport:
    """The wire client under the operator's rules. Raises SettingsError where certificates or proxy are unusable."""
    from surehook.wire.client import Client
    from surehook.wire.resolver import DnsResolver
    from surehook.wire.settings import Settings as WireSettings

    wire = WireSettings(
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


def snapshot(engine: Engine) -> Snapshot:
    """The engine's counters as a scrape shows them."""
    now = engine.clock.now()
    counts = dict(zip(LANES, engine.lane_counts, strict=False))
    parked: dict[str, int] = {}
    for (_, reason), count in engine.parked_counts.items():
        parked[reason] = parked.get(reason, 0) + count
    return Snapshot(
        accepted=engine.accept.accepted,
        attempts=engine.watch.attempts_by_lane(),
        retries=engine.watch.retries,
        finished=engine.watch.finished_by_state,
        notices=engine.watch.notices,
        latency=engine.watch.latency,
        lateness=engine.watch.lateness,
        in_flight=engine.dispatch.in_flight(),
        slots=dict(zip(LANES, engine.lanes(), strict=True)),
        depth={
            (lane, state): getattr(count, state)
            for lane, count in counts.items()
            for state in ("ready", "in_flight", "scheduled", "parked")
        },
        oldest_due_s={
            lane: 0.0 if count.oldest_due_at is None else max(0, now - count.oldest_due_at) / 1000
            for lane, count in counts.items()
        },
        parked=parked,
        memory_deliveries=engine.dispatch.held,
        waiting_events=engine.accept.waiting,
    )


def serve(settings: Settings, *, started: Started) -> int:
    """Run a server until SIGTERM or SIGINT; returns the exit status.

    Raises SettingsError where it cannot start as told (port taken, ledger locked or broken).
    """
    bound = bind(settings)
    process.take_descriptors()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    try:
        runner = _runner()
        return runner(_serve(settings, bound, started))
    finally:
        bound.close()


def bind(settings: Settings) -> socket.socket:
    """The listening socket, taken before anything else is touched."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((settings.host, settings.port))
        bound.listen(BACKLOG_CONNECTIONS)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise SettingsError(
                "port",
                f"port {settings.port} on {settings.host} is taken",
                hint="--port 0 takes any free one",
            ) from None
        raise SettingsError("host", f"cannot listen on {settings.host}: {error.strerror}") from None
    bound.setblocking(False)
    return bound


async def _serve(settings: Settings, bound: socket.socket, started: Started) -> int:
    from surehook.api.serving import Server, open_door
    from surehook.telemetry.logging import configure

    telemetry = configure(settings.log_level, settings.log_format)
    clock = SystemClock()
    engine = assemble(
        ledger=open_ledger(settings),
        transport=open_transport(settings, clock),
        clock=clock,
        entropy=SystemEntropy(),
        telemetry=telemetry,
        settings=engine_settings(settings),
    )
    try:
        await engine.start()
    except Problem as problem:
        raise SettingsError("database_url", problem.detail, hint=problem.hint) from None
    except LedgerError as error:
        raise SettingsError("database_url", f"{settings.database_path} cannot be opened: {error}") from None
    engine.metrics = PrometheusMetrics(lambda: snapshot(engine))
    door = await open_door(engine, own_key=settings.api_key, metrics_open=settings.metrics_open)
    server = Server(door.app)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    with _signals(server):
        serving = asyncio.ensure_future(server.serve(sockets=[bound]))
        failed = asyncio.ensure_future(engine.failed.wait())
        started(address(settings, bound), door.new_key)
        await asyncio.wait({serving, failed}, return_when=asyncio.FIRST_COMPLETED)
        engine.close_door()
        server.should_exit = True
        await serving
        failed.cancel()
        await door.services.stop()
        await engine.stop()
    return EXIT_FAILED if engine.failure is not None else 0


def address(settings: Settings, bound: socket.socket) -> str:
    """Where the server is, as a URL."""
    port = bound.getsockname()[1]
    return f"http://[{settings.host}]:{port}" if ":" in settings.host else f"http://{settings.host}:{port}"


@contextlib.contextmanager
def _signals(server: Any) -> Iterator[None]:
    """The first SIGTERM or SIGINT stops in order, a second one at once."""
    loop = asyncio.get_running_loop()
    seen: list[int] = []

    def on_signal(number: int) -> None:
        if seen:
            os._exit(128 + number)
        seen.append(number)
        server.should_exit = True

    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _runner() -> Callable[[Any], int]:
    """uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run
