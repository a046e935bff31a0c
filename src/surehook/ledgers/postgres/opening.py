"""Opening a database: the server is fit for a ledger (`probe.py`), and the schema is brought to its head."""

from __future__ import annotations

from surehook.core.errors import LedgerUnavailable, SettingsError
from surehook.ledgers.migrations.head import HEAD
from surehook.ledgers.postgres import probe
from surehook.ledgers.postgres.briefly import in_brief_locks
from surehook.ledgers.postgres.connecting import PATIENCE_S, connect_to
from surehook.ledgers.postgres.partitions import try_to_make_days
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query, read_all

KEY = "database_url"
# Any number that other programs on the same database are unlikely to use.
MIGRATION_LOCK = 0x5375_7265_4D69
MIGRATION_TRIES = 200  # two minutes: statements of the version before go on between any two


async def open_book(session: Session, other: Session, *, url: str, now: int) -> list[str]:
    """Make sure of the server and the schema; what is worth a warning. Raises SettingsError where it cannot serve."""
    await probe.reach(session, url)
    await probe.check_pooler(session, other)
    warnings = await probe.check_server(session)
    await migrate(session)
    await try_to_make_days(session, now=now)
    read_all()
    return warnings


async def revision(session: Session) -> str | None:
    """The schema's revision; None for an empty database."""
    if not await session.value(query("has_revision")):
        foreign = await session.value(query("has_tables"))
        if not await session.value(query("has_revision")):  # another node may have made all of it meanwhile
            if foreign:
                raise SettingsError(
                    KEY, "the database is another program's", hint="make one for surehook alone"
                )
            return None
    found: str | None = await session.value("select version_num from alembic_version")
    return found


async def migrate(session: Session) -> None:
    """Bring the schema to its head, in one transaction that keeps nobody waiting (`briefly.py`): nodes of the version
    before work on beside it. Nothing is imported where the head is there."""
    if await revision(session) == HEAD:
        return
    from surehook.ledgers.migrations.script import script

    async def change() -> None:
        await session.value(query("lock"), MIGRATION_LOCK)
        current = await revision(session)  # another node may have been faster
        if current != HEAD:
            for statement in script(current, dialect="postgresql"):
                await session.say(statement)

    if not await in_brief_locks(session, change, tries=MIGRATION_TRIES):
        raise LedgerUnavailable(
            f"the schema could not be changed in {MIGRATION_TRIES} tries: somebody holds a table (a dump, a session that "
            "was forgotten in a transaction); start again when that is over. Versions that run go on meanwhile"
        )


async def look(url: str, *, to_serve: bool = False) -> str | None:
    """The revision of the database at a URL. Changes nothing; raises SettingsError where nobody can look, or (`to_serve`)
    where a server would refuse to start."""
    session = Session(connect_to(url, "keep"), patience_s=PATIENCE_S["keep"])
    try:
        await probe.reach(session, url)
        if to_serve:
            await probe.check_server(session)
        return await revision(session)
    finally:
        await session.close()
