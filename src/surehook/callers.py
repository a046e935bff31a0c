"""Bounds of what callers may take of a process: settings on one side, the system's limits and deliveries on the other."""

from __future__ import annotations

from surehook.config import Settings
from surehook.host import process
from surehook.http_server.bounds import ServerBounds
from surehook.ports.telemetry import Telemetry
from surehook.wire.settings import WireSettings


def bounds(settings: Settings, telemetry: Telemetry) -> ServerBounds:
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
    return ServerBounds(connections=callers, body_bytes=settings.bodies_mb << 20)
