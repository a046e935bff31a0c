"""The tables as SQL for whoever runs migrations by hand, and for Alembic.

# env.py: autogenerate leaves the inbox's tables to the inbox
from surehook.inbox.sql import ddl

context.configure(..., include_name=ddl.include_name)

# a revision
def upgrade() -> None:
    ddl.upgrade(op.get_bind())

def downgrade() -> None:
    ddl.downgrade(op.get_bind())
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sqlalchemy import Index
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable, DropIndex

from surehook.core.errors import SettingsError
from surehook.inbox.sql.tables import PREFIX, metadata
from surehook.inbox.sql.versions import downgrade as downgrade
from surehook.inbox.sql.versions import indexes_since, since
from surehook.inbox.sql.versions import upgrade as upgrade

DIALECTS: dict[str, Any] = {
    "sqlite": sqlite.dialect,
    "postgresql": postgresql.dialect,
    "mysql": mysql.dialect,
    "mariadb": mysql.dialect,
}


def statements(dialect: str, names: Collection[str] | None = None) -> list[str]:
    """Return the statements that make tables and indexes: all, or those named. Raises SettingsError for an unknown dialect."""
    if dialect not in DIALECTS:
        raise SettingsError("dialect", f"{dialect!r} is not known", hint=", ".join(DIALECTS))
    made = DIALECTS[dialect]()
    found = []
    for table in metadata.sorted_tables:
        if names is not None and table.name.removeprefix(PREFIX) not in names:
            continue
        found.append(str(CreateTable(table).compile(dialect=made)).strip())
        found += index_statements(dialect, sorted(table.indexes, key=lambda one: str(one.name)))
    return found


def index_statements(dialect: str, indexes: Iterable[Index]) -> list[str]:
    """Return the statements that make these indexes."""
    made = DIALECTS[dialect]()
    return [str(CreateIndex(index).compile(dialect=made)).strip() for index in indexes]


def drop_statements(dialect: str, indexes: Iterable[Index]) -> list[str]:
    """Return the statements that drop these indexes."""
    made = DIALECTS[dialect]()
    return [str(DropIndex(index).compile(dialect=made)).strip() for index in indexes]


def script(dialect: str, *, version: int = 0) -> str:
    """Write the statements as one text, each statement ended by a semicolon: all, or what tables of this version lack."""
    wanted = [*statements(dialect, since(version)), *index_statements(dialect, indexes_since(version))]
    return "".join(f"{statement};\n\n" for statement in wanted).rstrip() + "\n" if wanted else ""


def include_name(name: str | None, type_: str, parent_names: Mapping[str, object]) -> bool:
    """For Alembic's `context.configure(include_name=…)`: whether a name of the database is the application's to compare."""
    return not (type_ == "table" and name is not None and name.startswith(PREFIX))
