"""`surehook backup`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surehook.cli.commands import command
from surehook.cli.output import Json, print_record

app = command()


@app.command()
def backup(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The copy; must not exist yet.")],
    database_url: Annotated[
        str | None, typer.Option(help="The ledger.", show_default="sqlite:///surehook.db")
    ] = None,
    json: Json = False,
) -> None:
    """Copy the ledger, as of one instant, while the server goes on. The copy is checked and synced."""
    from surehook.cli.errors import NOT_FOUND, CommandError
    from surehook.cli.progress import busy
    from surehook.config import Settings
    from surehook.maintenance import back_up

    settings = Settings.load(flags={"database_url": database_url})
    if not settings.is_sqlite:
        back_up(settings, str(path))  # says what to use instead
    if not settings.database_path.exists():
        raise CommandError(
            f"there is no ledger {settings.database_path}",
            hint="give its place with --database-url or SUREHOOK_DATABASE_URL",
            code=NOT_FOUND,
        )
    with busy(f"copying {settings.database_path.stat().st_size / (1 << 20):,.0f} MiB"):
        back_up(settings, str(path))
    print_record(
        {"ledger": str(settings.database_path), "copy": str(path), "bytes": path.stat().st_size}, json=json
    )
