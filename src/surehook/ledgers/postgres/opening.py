"""Opening a database: the server is checked (`probe.py`), and the schema brought to its head."""

from __future__ import annotations

from contextlib import suppress

from surehook.core.errors import LedgerError, LedgerUnavailable, SettingsError
from surehook.core.outbox_tables import is_table
from surehook.ledgers.migrations.head import HEAD
from surehook.ledgers.postgres import probe
from surehook.ledgers.postgres.brief_locks import in_brief_locks
from surehook.ledgers.postgres.connecting import PATIENCE_S, connect_to
from surehook.ledgers.postgres.partitions import try_to_make_days
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query, read_all

KEY = "database_url"
# Any number that other programs on the same database are unlikely to use.
MIGRATION_LOCK = 0x5375_7265_4D69
# Two minutes. Between attempts, nodes of the previous version work on.
MIGRATION_TRIES = 200


async def open_database(session: PostgresSession, other: PostgresSession, *, url: str, now: int) -> list[str]:
    """Check the server and migrate the schema. Return warnings; raises SettingsError if it cannot serve."""
    await probe.reach(session, url)
    await probe.check_pooler(session, other)
    if (schema := await missing_schema(session)) is not None:
        with suppress(LedgerError):  # without the right to, `check_server` says what is missing
            await session.say(f"create schema if not exists {schema}")
    warnings = await probe.check_server(session)
    await migrate(session)
    await try_to_make_days(session, now=now)
    read_all()
    return warnings


async def missing_schema(session: PostgresSession) -> str | None:
    """The schema that the connection names, alone, and that is not there."""
    if await session.value("select current_schema()") is not None:
        return None
    named: str = await session.value("show search_path")
    return named if is_table(named) else None


async def revision(session: PostgresSession) -> str | None:
    """Return the schema's revision; None for an empty database."""
    if not await session.value(query("has_revision")):
        foreign = await session.value(query("has_tables"))
        # Another node may have created everything meanwhile.
        if not await session.value(query("has_revision")):
            if foreign:
                raise SettingsError(
                    KEY, "the database is another program's", hint="make one for surehook alone"
                )
            return None
    found: str | None = await session.value("select version_num from alembic_version")
    return found


async def migrate(session: PostgresSession) -> None:
    """Bring the schema to its head, in one transaction under brief locks, so that nodes of the previous version work on.

    If the schema is at its head already, Alembic is not imported.
    """
    if await revision(session) == HEAD:
        return
    from surehook.ledgers.migrations.script import script

    async def change() -> None:
        await session.value(query("lock"), MIGRATION_LOCK)
        # Another node may have been faster.
        current = await revision(session)
        if current != HEAD:
            for statement in script(current, dialect="postgresql"):
                await session.say(statement)

    if not await in_brief_locks(session, change, tries=MIGRATION_TRIES):
        raise LedgerUnavailable(
            f"the schema could not be changed in {MIGRATION_TRIES} tries: somebody holds a table (a dump, a session that "
            "was forgotten in a transaction); start again when that is over. Versions that run go on meanwhile"
        )


async def look(url: str, *, to_serve: bool = False) -> str | None:
    """Return the revision of the database at a URL, and change nothing.

    Raises SettingsError if it cannot be read or, with `to_serve`, if a server would refuse to start.
    """
    session = PostgresSession(connect_to(url, "keep"), patience_s=PATIENCE_S["keep"])
    try:
        await probe.reach(session, url)
        if await missing_schema(session) is not None:
            return None  # a server makes it
        if to_serve:
            await probe.check_server(session)
        return await revision(session)
    finally:
        await session.close()
