"""The metrics of a process that serves nothing else: `surehook inbox work` and `surehook outbox run`, `--metrics HOST:PORT`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from surehook.core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client import Metric

HINT = "--metrics 127.0.0.1:9109"
Metrics = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Serve this process's metrics there, such as 127.0.0.1:9109."),
]


class Collecting(Protocol):
    """Metrics of this process, as prometheus_client collects them."""

    def collect(self) -> Iterable[Metric]: ...


def serve_metrics(collector: Collecting, where: str) -> str:
    """Serve metrics from a thread until the process ends; returns their address. Raises SettingsError."""
    host, port = _address(where)
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
