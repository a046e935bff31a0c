"""Opening a database: the settings of every connection, and the migration of the schema."""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Iterable

from surehook.core.errors import SettingsError
from surehook.ledgers.migrations.head import HEAD
from surehook.ledgers.sqlite.file import KEY
from surehook.ledgers.sqlite.session import SqliteSession
from surehook.ledgers.sqlite.statements import read_all

log = logging.getLogger("surehook.ledgers")

# 3.35 has RETURNING; `update … from` came with 3.33, and the usual builds have the JSON functions.
OLDEST = (3, 35, 0)
# WAL pages after which a commit checkpoints: 16 MB. Seldom enough that hot pages are moved once for many changes, and
# often enough that reading stays fast and a restart has little to replay.
CHECKPOINT_PAGES = 4_000
CACHE_KIB = 32 * 1024

_EVERY = (
    # Never left to the build's default: NORMAL loses commits when the power fails.
    "synchronous = full",
    f"cache_size = -{CACHE_KIB}",
    "temp_store = memory",
)
WRITER = (
    *_EVERY,
    f"wal_autocheckpoint = {CHECKPOINT_PAGES}",
    # Some builds overwrite deleted data with zeros, which writes every freed page once more.
    "secure_delete = off",
)
READER = (*_EVERY, "query_only = on")
_FULL = 2
_TABLE = re.compile(r"CREATE TABLE \"?(\w+)")


def open_writer(session: SqliteSession, beside: str | None) -> None:
    """Connect the writing session, and check that its settings took effect. Raises SettingsError."""
    session.connect(WRITER)
    version = tuple(int(part) for part in session.value("select sqlite_version()").split("."))
    if version < OLDEST:
        raise SettingsError(
            KEY, f"SQLite {sqlite3.sqlite_version} is too old", hint="3.35 or newer, or PostgreSQL"
        )
    # Refuses another program's file before anything in it changes.
    revision(session, beside)
    if session.value("pragma journal_mode = wal") != "wal":
        raise SettingsError(KEY, "the file does not take write-ahead logging", hint="use a local disk")
    check_durable(session)
    _migrate(session, beside)
    read_all()


def open_reader(session: SqliteSession) -> None:
    session.connect(READER)
    check_durable(session)


def check_durable(session: SqliteSession) -> None:
    """Check that a commit on this connection waits for the disk."""
    if session.value("pragma synchronous") != _FULL:
        raise SettingsError(KEY, "the database does not wait for the disk (synchronous is not FULL)")


def revision(session: SqliteSession, beside: str | None = None) -> str | None:
    """Return the schema's revision; None for a file without a ledger. One with other tables is refused, unless the table `beside`
    is among them: an application that has an outbox there means to share its file."""
    named = "select count(*) from sqlite_master where name = ?"
    if not session.value(named, ("alembic_version",)):
        if session.value("select count(*) from sqlite_master") and not session.value(named, (beside,)):
            hint = (
                "choose another file"
                if beside is None
                else f"choose another file, or make the table {beside} in it first"
            )
            raise SettingsError(KEY, "the file is another program's database", hint=hint)
        return None
    if beside is not None and not session.value(named, ("node",)):
        raise SettingsError(
            KEY,
            "`alembic_version` is the application's, and the ledger needs that name",
            hint='context.configure(…, version_table="app_version") in the application\'s env.py',
        )
    found: str | None = session.value("select version_num from alembic_version")
    return found


def _migrate(session: SqliteSession, beside: str | None) -> None:
    """Bring the schema to its head, in one transaction. If it is there already, Alembic is not imported."""
    current = revision(session, beside)
    if current == HEAD:
        return
    from surehook.ledgers.migrations.script import script

    with session.writing():
        if revision(session, beside) == current:
            if current is None:
                _check_names(session, script(None))
            for statement in script(current):
                if current is not None and _may_take_long(statement):
                    log.info(
                        "the schema goes from %s to %s; now: %s (seconds where there are millions of rows)",
                        current,
                        HEAD,
                        " ".join(statement.split()),
                    )
                session.rows(statement)
    if current is not None:
        log.info("the schema is at %s", HEAD)


def _check_names(session: SqliteSession, statements: Iterable[str]) -> None:
    """Refuse a file in which an application has tables of the names that the ledger needs."""
    there = {name for (name,) in session.rows("select name from sqlite_master where type = 'table'")}
    needed = {found[1] for statement in statements if (found := _TABLE.match(statement)) is not None}
    if taken := sorted(there & needed):
        raise SettingsError(
            KEY,
            f"the file has tables of the application's with the names of the ledger's: {', '.join(taken)}",
            hint="give the ledger a file of its own, and let `surehook outbox run` read the application's",
        )


def _may_take_long(statement: str) -> bool:
    """Return True if a statement reads whole tables: it builds an index over existing rows, or counts them."""
    return statement.startswith("CREATE INDEX") or (statement.startswith("INSERT") and "SELECT" in statement)
