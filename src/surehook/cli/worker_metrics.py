"""The metrics of a worker process, which serves nothing else: `surehook inbox work --metrics HOST:PORT`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from surehook.core.errors import SettingsError

if TYPE_CHECKING:
    from surehook.inbox.prometheus import Collector

HINT = "--metrics 127.0.0.1:9109"
Metrics = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Serve this process's metrics there, such as 127.0.0.1:9109."),
]


class Counting(Protocol):
    """An inbox of either kind."""

    def collector(self) -> Collector: ...


def serve_metrics(inbox: Counting, where: str) -> str:
    """Serve the inbox's metrics from a thread until the process ends; returns their address. Raises SettingsError."""
    host, port = _address(where)
    collector = inbox.collector()  # it says what to install, where that is missing
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    try:
        server, _ = start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise SettingsError(
            "metrics", f"cannot listen on {where}: {error.strerror or error}", hint=HINT
        ) from None
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{server.server_port}/metrics"


def _address(where: str) -> tuple[str, int]:
    host, colon, port = where.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdigit() or int(port) > 65_535:
        raise SettingsError("metrics", f"{where!r:.64} is no host and port", hint=HINT)
    return host, int(port)
