"""Everything that watches a serving process: its pulse, its disk, the traffic at its door, its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from msgspec import Struct

from surehook.api.traffic import Traffic
from surehook.config import Settings
from surehook.delivery.engine import Engine
from surehook.host import vitals
from surehook.host.clock import SystemClock
from surehook.http_server.connections import Connections
from surehook.noticing import Noticing
from surehook.outbox.relay import Relay
from surehook.scrape import snapshot
from surehook.telemetry.disk import DiskWatch
from surehook.telemetry.logging import LoggingTelemetry
from surehook.telemetry.prometheus import PrometheusMetrics
from surehook.telemetry.pulse import Pulse


class Observers(Struct):
    """Made after the engine and before the door, which counts its traffic and serves the metrics."""

    traffic: Traffic
    disk: DiskWatch
    pulse: Pulse
    metrics: PrometheusMetrics


def observers(
    engine: Engine,
    connections: Connections,
    telemetry: LoggingTelemetry,
    *,
    settings: Settings,
    labels: Mapping[str, str],
    relay: Relay | None = None,
) -> Observers:
    """Make all of them. `labels` go on every metric, to tell this process from others; `relay` reads an outbox."""
    clock = SystemClock()
    noticing = Noticing(telemetry, engine, boot=clock.boot)
    # An outage is a durable notice too, which is kept by the engine that it happens to.
    engine.outage.telemetry = noticing
    traffic = Traffic(clock=engine.clock, telemetry=noticing, outage=engine.outage)
    disk = DiskWatch(engine.ledger.room, noticing)
    disk.look()
    pulse = Pulse(
        clock=clock,
        telemetry=noticing,
        descriptors=vitals.descriptors,
        looks=(disk.look, traffic.look, telemetry.flush),
    )
    ledger = "sqlite" if settings.is_sqlite else "postgresql"
    metrics = PrometheusMetrics(
        partial(
            snapshot, engine, traffic, connections, pulse, role=settings.role, ledger=ledger, relay=relay
        ),
        always=labels,
    )
    return Observers(traffic, disk, pulse, metrics)
