"""Opening a database: the server is fit for a ledger, and the schema is brought to its head.

A pooler that lends a connection for one transaction only (PgBouncer's `pool_mode = transaction`) takes away
what the hot statements stand on: settings of a session, prepared statements, advisory locks. It shows itself
by giving two clients one backend, and is named instead of being served badly.
"""

from __future__ import annotations

from surehook.core.errors import CommitUnknown, LedgerUnavailable, SettingsError
from surehook.ledgers.migrations.head import HEAD
from surehook.ledgers.postgres.partitions import make_days
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query, read_all

KEY = "database_url"
OLDEST = 14_00_00
# Any number that other programs on the same database are unlikely to use.
MIGRATION_LOCK = 0x5375_7265_4D69
MIGRATION_TRIES = 3


async def open_book(session: Session, other: Session, *, now: int) -> None:
    """Make sure of the server and the schema. Raises SettingsError where it cannot serve."""
    await _check_server(session)
    await _check_pooler(session, other)
    await migrate(session)
    await make_days(session, now=now)
    read_all()


async def _check_server(session: Session) -> None:
    found = await session.row(query("server"))
    assert found is not None
    if found["version"] < OLDEST:
        raise SettingsError(KEY, f"PostgreSQL {found['version'] // 10_000} is too old", hint="14 or newer")
    if found["encoding"] != "UTF8":
        raise SettingsError(
            KEY, f"the database's encoding is {found['encoding']}", hint="make it with encoding UTF8"
        )
    if found["standby"] or found["read_only"] == "on":
        raise SettingsError(KEY, "the server takes no writes (a standby, or set to read-only)")


async def _check_pooler(session: Session, other: Session) -> None:
    mine, theirs = await session.value(query("backend")), await other.value(query("backend"))
    if mine == theirs:
        raise SettingsError(
            KEY,
            "a pooler in transaction mode stands between here and PostgreSQL",
            hint="connect to PostgreSQL itself, or to a pool with pool_mode = session",
        )


async def revision(session: Session) -> str | None:
    """The schema's revision; None for an empty database."""
    if not await session.value(query("has_revision")):
        foreign = await session.value(query("has_tables"))
        if not await session.value(query("has_revision")):  # another node may have made all of it meanwhile
            if foreign:
                raise SettingsError(KEY, "the database is another program's", hint="make one for surehook alone")
            return None
    found: str | None = await session.value("select version_num from alembic_version")
    return found


async def migrate(session: Session) -> None:
    """Bring the schema to its head, in one transaction under a lock. Nothing is imported where it is there."""
    if await revision(session) == HEAD:
        return
    from surehook.ledgers.migrations.script import script

    for attempt in range(MIGRATION_TRIES):
        try:
            async with session.writing():
                await session.value(query("lock"), MIGRATION_LOCK)
                current = await revision(session)  # another node may have been faster
                if current != HEAD:
                    for statement in script(current, dialect="postgresql"):
                        await session.say(statement)
            return
        except (CommitUnknown, LedgerUnavailable):
            if attempt == MIGRATION_TRIES - 1:
                raise
