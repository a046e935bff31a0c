"""`surehook migrate`."""

from __future__ import annotations

from typing import Annotated

import typer

from surehook.cli.commands import group
from surehook.cli.output import Json, print_record

app = group("Show or apply the ledger's migrations. `surehook serve` applies them by itself.")

Database = Annotated[str | None, typer.Option(help="The ledger.", show_default="sqlite:///surehook.db")]


@app.command()
def status(database_url: Database = None, json: Json = False) -> int:
    """Show the ledger's revision and the newest one; exit code 7 if they differ."""
    from surehook.cli.errors import NOT_MET, OK
    from surehook.config import Settings
    from surehook.maintenance import revisions

    settings = Settings.load(flags={"database_url": database_url})
    current, newest = revisions(settings)
    print_record({"ledger": settings.shown("database_url"), "revision": current, "newest": newest}, json=json)
    return OK if current == newest else NOT_MET


@app.command()
def plan(database_url: Database = None, json: Json = False) -> None:
    """Show what `migrate up` would run, in one transaction. Changes nothing."""
    from surehook.config import Settings
    from surehook.maintenance import migration_plan, revisions

    settings = Settings.load(flags={"database_url": database_url})
    current, newest = revisions(settings)
    statements = list(migration_plan(settings))
    if json:
        ledger = settings.shown("database_url")
        print_record(
            {"ledger": ledger, "revision": current, "newest": newest, "statements": statements}, json=True
        )
        return
    for statement in statements:
        typer.echo(statement)
    typer.echo(f"-- {len(statements)} statements, from revision {current or 'none'} to {newest}")


@app.command()
def up(database_url: Database = None, json: Json = False) -> None:
    """Bring the ledger to the newest revision. On SQLite the server must not be running."""
    from surehook.cli.progress import busy
    from surehook.config import Settings
    from surehook.maintenance import migrate, revisions

    settings = Settings.load(flags={"database_url": database_url})
    before, _ = revisions(settings)
    with busy("migrating"):
        migrate(settings)
    now, _ = revisions(settings)
    print_record({"ledger": settings.shown("database_url"), "was": before, "revision": now}, json=json)
