"""Watches over a serving process: its pulse, its disk, the traffic at its door, its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from surehook.api.services import Services
from surehook.config import Settings
from surehook.delivery.engine import Engine
from surehook.host import vitals
from surehook.host.clock import SystemClock
from surehook.http_server.server import HttpServer
from surehook.noticing import Noticing
from surehook.scrape import snapshot
from surehook.telemetry.disk import DiskWatch
from surehook.telemetry.logging import LoggingTelemetry
from surehook.telemetry.prometheus import PrometheusMetrics
from surehook.telemetry.pulse import Pulse


def observe(
    engine: Engine,
    services: Services,
    server: HttpServer,
    telemetry: LoggingTelemetry,
    *,
    settings: Settings,
    always: Mapping[str, Any],
) -> None:
    """Begin to watch, among the engine's loops. `always`: labels that tell this process from others."""
    clock = SystemClock()
    noticing = Noticing(telemetry, engine, boot=clock.boot)
    services.traffic.telemetry = engine.outage.telemetry = noticing
    disk = DiskWatch(engine.ledger.room, noticing)
    disk.look()
    services.reasons.append(disk.reason)
    pulse = Pulse(
        clock=clock,
        telemetry=noticing,
        descriptors=vitals.descriptors,
        looks=(disk.look, services.traffic.look, telemetry.flush),
    )
    ledger = "sqlite" if settings.is_sqlite else "postgresql"
    engine.metrics = PrometheusMetrics(
        partial(
            snapshot, engine, services.traffic, server.connections, pulse, role=settings.role, ledger=ledger
        ),
        always={name: str(value) for name, value in always.items()},
    )
    engine.loops.keep("pulse", pulse.run)
    engine.loops.keep("callers", server.pass_time)
