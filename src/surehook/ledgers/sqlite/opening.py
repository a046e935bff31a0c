"""Opening a database: the settings every connection must have, and the schema brought to its head."""

from __future__ import annotations

import logging
import sqlite3

from surehook.core.errors import SettingsError
from surehook.ledgers.migrations.head import HEAD
from surehook.ledgers.sqlite.file import KEY
from surehook.ledgers.sqlite.session import Session
from surehook.ledgers.sqlite.statements import read_all

log = logging.getLogger("surehook.ledgers")

# 3.35: RETURNING, the built-in JSON functions in the usual builds, `update … from` since 3.33.
OLDEST = (3, 35, 0)
# WAL pages after which a commit moves them into the file: 16 MB, seldom enough that hot pages are moved
# once for many changes, small enough that reading stays fast and a restart has little to replay.
CHECKPOINT_PAGES = 4_000
CACHE_KIB = 32 * 1024

_EVERY = (
    "synchronous = full",  # never left to the build's default: NORMAL loses commits with the power
    f"cache_size = -{CACHE_KIB}",
    "temp_store = memory",
)
WRITER = (
    *_EVERY,
    f"wal_autocheckpoint = {CHECKPOINT_PAGES}",
    "secure_delete = off",  # some builds zero what is deleted, which writes every freed page once more
)
READER = (*_EVERY, "query_only = on")
_FULL = 2


def open_writer(session: Session) -> None:
    """Connect the writing session and make sure that what was asked for holds. Raises SettingsError."""
    session.connect(WRITER)
    version = tuple(int(part) for part in session.value("select sqlite_version()").split("."))
    if version < OLDEST:
        raise SettingsError(
            KEY, f"SQLite {sqlite3.sqlite_version} is too old", hint="3.35 or newer, or PostgreSQL"
        )
    revision(session)  # another program's file is refused before anything about it is changed
    if session.value("pragma journal_mode = wal") != "wal":
        raise SettingsError(KEY, "the file does not take write-ahead logging", hint="use a local disk")
    check_durable(session)
    _migrate(session)
    read_all()


def open_reader(session: Session) -> None:
    session.connect(READER)
    check_durable(session)


def check_durable(session: Session) -> None:
    """Read back that a commit on this connection waits for the disk."""
    if session.value("pragma synchronous") != _FULL:
        raise SettingsError(KEY, "the database does not wait for the disk (synchronous is not FULL)")


def revision(session: Session) -> str | None:
    """The schema's revision; None for an empty file."""
    if not session.value("select count(*) from sqlite_master where name = 'alembic_version'"):
        if session.value("select count(*) from sqlite_master"):
            raise SettingsError(KEY, "the file is another program's database", hint="choose another file")
        return None
    found: str | None = session.value("select version_num from alembic_version")
    return found


def _migrate(session: Session) -> None:
    """Bring the schema to its head, in one transaction. Nothing is imported where it is there already."""
    current = revision(session)
    if current == HEAD:
        return
    from surehook.ledgers.migrations.script import script

    with session.writing():
        if revision(session) == current:
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


def _may_take_long(statement: str) -> bool:
    """Whether it reads whole tables: an index over rows that are there, or a count of them."""
    return statement.startswith("CREATE INDEX") or (statement.startswith("INSERT") and "SELECT" in statement)
