"""Migrations from a revision to the head, as statements for the ledger's own connection.

Alembic writes them without a connection (offline mode), so only one library opens the database, and every binding and every
test takes the same path. Importing this module imports Alembic.
"""

from __future__ import annotations

import io
import sqlite3
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util import CommandError

from surehook.core.errors import SettingsError
from surehook.ledgers.migrations.head import HEAD

HERE = Path(__file__).parent


def config(output: io.StringIO | None = None, *, dialect: str = "sqlite") -> Config:
    """Make Alembic's configuration for these migrations."""
    made = Config(output_buffer=output) if output is not None else Config()
    made.set_main_option("script_location", str(HERE).replace("%", "%%"))
    made.attributes["dialect"] = dialect
    return made


@cache
def script(current: str | None, *, dialect: str = "sqlite", to: str = HEAD) -> tuple[str, ...]:
    """Return the statements from `current` (None: an empty database) to the head (or `to`), without transactions.

    Raises SettingsError for a revision that this version does not know, since a newer one made it.
    """
    output = io.StringIO()
    try:
        command.upgrade(config(output, dialect=dialect), f"{current or 'base'}:{to}", sql=True)
    except CommandError as error:
        raise SettingsError(
            "database_url",
            f"the database has schema revision {current}, which this version does not know",
            hint="use the newer version that made it",
        ) from error
    return tuple(_statements(output.getvalue()))


def _statements(text: str) -> list[str]:
    found, part = [], ""
    for line in text.splitlines():
        if line.startswith("--"):
            continue
        part += line + "\n"
        if sqlite3.complete_statement(part):
            statement = part.strip()
            if statement.rstrip(";").upper() not in ("", "BEGIN", "COMMIT"):
                found.append(statement)
            part = ""
    assert not part.strip(), "a migration ends with a whole statement"
    return found
