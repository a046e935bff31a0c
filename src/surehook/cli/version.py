"""`surehook version`."""

from __future__ import annotations

import platform
import sqlite3

from surehook import __version__
from surehook.cli.commands import command
from surehook.cli.output import Json, print_record

app = command()


@app.command()
def version(json: Json = False) -> None:
    """Print the versions of surehook, Python, SQLite and the system."""
    print_record(
        {
            "surehook": __version__,
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "system": platform.platform(),
        },
        json=json,
    )
