"""`surehook config show`: every setting as this process would use it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surehook.cli.commands import group
from surehook.cli.output import Json, document
from surehook.cli.server import Wide
from surehook.cli.tables import Column, print_table
from surehook.config import SETTINGS, Settings

app = group("Show the settings and where each comes from.")


@app.callback()
def config() -> None:
    """Settings: default < surehook.toml < environment (SUREHOOK_…) < flag."""


@app.command()
def show(
    origin: Annotated[bool, typer.Option("--origin", help="Say where each value comes from.")] = False,
    wide: Wide = False,
    json: Json = False,
    file: Annotated[
        Path | None,
        typer.Option("--config", help="Settings file.", show_default="surehook.toml where there is one"),
    ] = None,
) -> None:
    """Print every setting. Secrets are redacted."""
    settings = Settings.load(file=file)
    if json:
        document(_plain(settings, origin))
        return
    columns = [Column("setting"), Column("value"), Column("unit", rank=2)]
    columns += [*([Column("origin")] if origin else []), Column("meaning", least=20)]
    rows = []
    for setting in SETTINGS:
        came_from = [settings.origin(setting.name)] if origin else []
        rows.append([setting.name, settings.shown(setting.name), setting.unit, *came_from, setting.meaning])
    print_table(columns, rows, wide=wide)


def _plain(settings: Settings, origin: bool) -> dict[str, object]:
    """One object by setting name: the value, or value and origin."""
    out: dict[str, object] = {}
    for setting in SETTINGS:
        value = getattr(settings, setting.name)
        if setting.secret and value is not None:
            value = settings.shown(setting.name)
        out[setting.name] = {"value": value, "origin": settings.origin(setting.name)} if origin else value
    return out
