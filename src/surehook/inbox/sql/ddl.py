"""The tables as SQL for whoever runs migrations by hand, and as two functions for Alembic.

from surehook.inbox.sql import ddl

def upgrade() -> None:
    ddl.upgrade(op.get_bind())

def downgrade() -> None:
    ddl.downgrade(op.get_bind())
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from surehook.core.errors import SettingsError
from surehook.inbox.sql.tables import PREFIX, metadata

DIALECTS: dict[str, Any] = {
    "sqlite": sqlite.dialect,
    "postgresql": postgresql.dialect,
    "mysql": mysql.dialect,
    "mariadb": mysql.dialect,
}


def statements(dialect: str, names: Collection[str] | None = None) -> list[str]:
    """What makes the tables and indexes: all, or those of these names. Raises SettingsError for a dialect that is not known."""
    if dialect not in DIALECTS:
        raise SettingsError("dialect", f"{dialect!r} is not known", hint=", ".join(DIALECTS))
    made = DIALECTS[dialect]()
    found = []
    for table in metadata.sorted_tables:
        if names is not None and table.name.removeprefix(PREFIX) not in names:
            continue
        found.append(str(CreateTable(table).compile(dialect=made)).strip())
        indexes = sorted(table.indexes, key=lambda one: str(one.name))
        found += [str(CreateIndex(index).compile(dialect=made)).strip() for index in indexes]
    return found


def script(dialect: str) -> str:
    """The same as one text, each statement ended by a semicolon."""
    return "".join(f"{statement};\n\n" for statement in statements(dialect)).rstrip() + "\n"


def upgrade(connection: Connection) -> None:
    """Make the tables that are missing: for a revision of Alembic."""
    metadata.create_all(connection)


def downgrade(connection: Connection) -> None:
    """Drop the tables, with everything in them."""
    metadata.drop_all(connection)
