"""`surehook serve`: API, delivery or both, in one process or several, on the ledger of the settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surehook.cli.commands import command
from surehook.cli.output import note, paint
from surehook.config import Settings

app = command()


@app.command()
def serve(
    dev: Annotated[
        bool, typer.Option("--dev", help="Allow http:// and this machine's own addresses as receivers.")
    ] = False,
    host: Annotated[str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0: any.", show_default="8080")] = None,
    database_url: Annotated[
        str | None, typer.Option(help="The ledger.", show_default="sqlite:///surehook.db")
    ] = None,
    role: Annotated[str | None, typer.Option(help="all, api, worker or console.", show_default="all")] = None,
    lane: Annotated[
        str | None, typer.Option(help="The lane a worker delivers: first or retry.", show_default="both")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(help="Processes that share the port and the work.", show_default="1")
    ] = None,
    show_processes: Annotated[
        bool, typer.Option("--show-processes", help="Say a line for each process that serves.")
    ] = False,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings file.", show_default="surehook.toml where there is one")
    ] = None,
) -> int:
    """Run the server until SIGTERM or Ctrl-C; a second signal stops at once.

    Every setting can be given in the environment or in surehook.toml: see `surehook config show`.
    """
    flags = {
        "host": host, "port": port, "database_url": database_url, "role": role, "lane": lane,
        "processes": processes, "log_level": log_level,
    }  # fmt: skip
    settings = Settings.load(file=config, flags=flags, dev=dev)
    from surehook.bootstrap import serve as run_server
    from surehook.host.process import need_descriptors

    need_descriptors()
    is_new = settings.is_sqlite and not settings.database_path.exists()
    return run_server(
        settings,
        started=lambda address, key: greet(settings, address, key, is_new=is_new),
        say_each=show_processes,
    )


def greet(settings: Settings, address: str, new_key: str | None, *, is_new: bool = False) -> None:
    """Print on stderr the server's address and everything unusual about it."""
    import sys

    note(paint(f"surehook listens on {address}", "bold", sys.stderr))
    # A relative path makes a new ledger in another folder: so the whole path is shown, and whether it is new.
    ledger = settings.database_path.absolute() if settings.is_sqlite else settings.shown("database_url")
    new = paint("  NEW, empty", "yellow", sys.stderr) if is_new else ""
    note(f"  ledger    {ledger}  ({settings.origin('database_url')}){new}")
    for name, shown in (("broker_url", "broker   "), ("redis_url", "redis    ")):
        if getattr(settings, name) is not None:
            note(f"  {shown} {settings.shown(name)}  ({settings.origin(name)})")
    if settings.outbox_table is not None and settings.role != "worker":
        note(f"  outbox    {settings.outbox_table}  ({settings.origin('outbox_table')})")
    if settings.role != "all" or settings.processes > 1:
        lane = "" if settings.lane == "both" else f", lane {settings.lane}"
        note(f"  role      {settings.role}{lane}, processes: {settings.processes}")
    note(f"  API       {address}/docs" if settings.role != "worker" else f"  metrics   {address}/metrics")
    if settings.file:
        note(f"  settings  {settings.file}")
    for text in switches(settings):
        note(paint(f"  ON        {text}", "yellow", sys.stderr))
    if new_key is not None:
        note(f"  key       {new_key}")
        note("            made for this empty ledger and shown only now; commands find it with")
        note(f"            export SUREHOOK_API_KEY={new_key}")


def switches(settings: Settings) -> list[str]:
    """The switches that make a server less strict than it should be in production, with their origin."""
    found = []
    if settings.allow_http:
        found.append(f"allow_http: endpoints may have http:// addresses  ({settings.origin('allow_http')})")
    if settings.allow_networks:
        networks = settings.shown("allow_networks")
        found.append(f"allow_networks: requests may reach {networks}  ({settings.origin('allow_networks')})")
    if settings.tenant_networks:
        networks = settings.shown("tenant_networks")
        found.append(
            f"tenant_networks: requests may reach {networks}  ({settings.origin('tenant_networks')})"
        )
    if settings.metrics_open:
        found.append(f"metrics_open: /metrics needs no key  ({settings.origin('metrics_open')})")
    return found
