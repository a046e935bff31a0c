"""The versions of the tables: what came when, and which of them a database has.

A later version only adds. So the version before goes on working on newer tables while an application is deployed, and a
database is brought up by making what is not there.

Which version a database has, its tables say themselves. A row with a number could say something else: where an ORM's or
Alembic's own definitions made the tables, where a test emptied all of them, or a script stopped half-way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Index, Inspector, inspect

from surehook.core.errors import SettingsError
from surehook.inbox.sql.tables import PREFIX, metadata
from surehook.ports.inbox import StoreUnavailable

# Version → the tables that came with it, without their prefix.
CAME: dict[int, tuple[str, ...]] = {
    1: ("requests", "events", "runs", "conflicts", "documents", "steps", "receipts"),
    2: ("tries",),
    3: (),
}
# Version → the indexes that came with it, of tables that were there. A table that is made today has them from the start.
INDEXES: dict[int, tuple[str, ...]] = {3: ("documents_due",)}
_TABLE_OF = {str(index.name): table.name for table in metadata.sorted_tables for index in table.indexes}
CURRENT = max(CAME)
_LATER = [
    name for came in (CAME, INDEXES) for version, names in came.items() if version > 1 for name in names
]
# On PostgreSQL, where SQLAlchemy's look at the indexes of a table costs as much as a batch of events.
_IS_CURRENT = "SELECT " + " AND ".join(f"to_regclass('{PREFIX}{name}') IS NOT NULL" for name in _LATER)
_WAIT_S = 60  # for another process that makes tables just now
_LOCK = "surehook_inbox_tables"


def since(version: int) -> list[str]:
    """The tables that came after this version. Raises SettingsError for a version that there never was."""
    if version not in (0, *CAME):
        raise SettingsError("version", f"there is no version {version}", hint=f"0 to {CURRENT}; 0: no tables")
    return [name for number, names in CAME.items() if number > version for name in names]


def indexes_since(version: int) -> list[Index]:
    """The indexes that came after this version, of the tables that it has."""
    made_anew = since(version)
    return indexes(
        name
        for number, names in INDEXES.items()
        for name in names
        if number > version and table_of(name) not in made_anew
    )


def indexes(names: Iterable[str]) -> list[Index]:
    """The indexes of these names, without their prefix."""
    wanted = {PREFIX + name for name in names}
    return [index for table in metadata.sorted_tables for index in table.indexes if index.name in wanted]


def table_of(index: str) -> str:
    """The table of an index, both without their prefix."""
    return _TABLE_OF[PREFIX + index].removeprefix(PREFIX)


def of(connection: Connection) -> int:
    """The newest version of which a database has everything; 0: none."""
    there = inspect(connection)
    version = 0
    for number in CAME:
        if not _is_there(there, number):
            break
        version = number
    return version


def is_current(connection: Connection) -> bool:
    """Tell whether what came after the first version is there: few questions for each worker that begins."""
    if connection.dialect.name == "postgresql":
        return bool(_say(connection, _IS_CURRENT))
    there = inspect(connection)
    return all(_is_there(there, number) for number in CAME if number > 1)


def _is_there(there: Inspector, version: int) -> bool:
    return all(there.has_table(PREFIX + name) for name in CAME[version]) and all(
        _has_index(there, name) for name in INDEXES.get(version, ())
    )


def _has_index(there: Inspector, name: str) -> bool:
    table = PREFIX + table_of(name)
    return there.has_table(table) and any(one["name"] == PREFIX + name for one in there.get_indexes(table))


def outdated(version: int) -> str:
    """Return what to do about tables of this version, in one line."""
    return (
        f"its tables are of version {version}, and this surehook needs {CURRENT}: `surehook inbox ddl --from {version}` "
        "prints what is missing, create_tables() or Django's `migrate` makes it"
    )


def upgrade(connection: Connection | None) -> None:
    """Make the tables that are missing; the rows of those that are there are not touched. Of two who do it, one waits.

    Raises SettingsError without a connection, as `alembic upgrade --sql` has none.
    """
    if connection is None:
        raise SettingsError(
            "connection",
            "the inbox needs a connection to see what is missing",
            hint="in a script, what `surehook inbox ddl --from VERSION` prints",
        )
    with _alone(connection):
        metadata.create_all(connection)
        for index in indexes_since(min(CAME)):
            index.create(connection, checkfirst=True)


def downgrade(connection: Connection, to: int = 0) -> None:
    """Drop the tables that came after this version, with everything in them, and the indexes. Raises SettingsError."""
    for index in indexes_since(to):
        index.drop(connection, checkfirst=True)
    metadata.drop_all(connection, tables=[metadata.tables[PREFIX + name] for name in since(to)])


@contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    """Keep others out between looking and making. SQLite's writers are alone already."""
    if connection.dialect.name == "postgresql":  # until the end of the transaction
        _say(connection, f"SELECT pg_advisory_xact_lock(hashtext('{_LOCK}'))")
        yield
    elif connection.dialect.name in ("mysql", "mariadb"):  # whose CREATE TABLE ends the transaction
        if _say(connection, f"SELECT GET_LOCK('{_LOCK}', {_WAIT_S})") != 1:
            raise StoreUnavailable("another process has been making the tables of the inbox for a minute")
        try:
            yield
        finally:
            _say(connection, f"SELECT RELEASE_LOCK('{_LOCK}')")
    else:
        yield


def _say(connection: Connection, statement: str) -> Any:
    return connection.exec_driver_sql(statement).scalar()
