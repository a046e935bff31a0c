"""`surehook version`."""

from __future__ import annotations

import platform
import sqlite3

from surehook import __version__
from surehook.cli.lazy import command
from surehook.cli.output import Json, facts

app = command()


@app.command()
def version(json: Json = False) -> None:
    """Print the versions of surehook, Python, SQLite and the system."""
    facts(
        {
            "surehook": __version__,
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "system": platform.platform(),
        },
        json=json,
    )
