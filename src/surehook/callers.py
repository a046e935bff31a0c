"""What callers may take of a process: settings on one side, on the other what the system allows and deliveries need."""

from __future__ import annotations

from collections.abc import Callable

from surehook.api.ingest import App
from surehook.api.serving import rendered
from surehook.config import Settings
from surehook.host import process
from surehook.http_server.bounds import Bounds
from surehook.http_server.server import HttpServer
from surehook.ports.telemetry import Telemetry
from surehook.wire.settings import Settings as WireSettings


def server(app: App, settings: Settings, *, now: Callable[[], int], telemetry: Telemetry) -> HttpServer:
    """The server of an application, not listening yet: what it refuses by itself is a problem as everything else is."""
    return HttpServer(app, render=rendered, now=now, telemetry=telemetry, bounds=bounds(settings, telemetry))


def bounds(settings: Settings, telemetry: Telemetry) -> Bounds:
    """The server's bounds. Where there are too few descriptors for all callers, the log says so."""
    allowed = process.descriptors_allowed()
    deliveries = 0 if settings.role in ("api", "console") else WireSettings().connections
    callers = process.callers_within(allowed, wanted=settings.connections, deliveries=deliveries)
    if callers < settings.connections:
        telemetry.fact(
            "descriptors.weak",
            allowed=allowed,
            connections=callers,
            wanted=settings.connections,
            hint="raise the limit of open files (ulimit -n, LimitNOFILE), or lower `connections`",
        )
    return Bounds(connections=callers, body_bytes=settings.bodies_mb << 20)
