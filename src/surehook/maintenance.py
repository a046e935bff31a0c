"""Work on a ledger that needs no server: a backup, its revision, the statements of a migration, the migration."""

from __future__ import annotations

import asyncio

from surehook.bootstrap import needs, open_ledger
from surehook.config import Settings
from surehook.host.clock import SystemClock


def back_up(settings: Settings, path: str) -> None:
    """Copy the ledger as of one instant, whether or not a server is on it. Raises Problem."""
    asyncio.run(open_ledger(settings).backup(path))


def migrate(settings: Settings) -> None:
    """Bring the ledger to the newest revision. Raises SettingsError while a server is on its file."""

    async def open_once() -> None:
        ledger = open_ledger(settings)
        await ledger.open(now=SystemClock().now())
        await ledger.close()

    asyncio.run(open_once())


def revisions(settings: Settings, *, to_serve: bool = False) -> tuple[str | None, str]:
    """The ledger's revision (None: no ledger yet) and the newest. Changes nothing; `to_serve` raises the errors of a server's
    start."""
    from surehook.ledgers.migrations.head import HEAD

    return _revision(settings, to_serve=to_serve), HEAD


def migration_plan(settings: Settings) -> tuple[str, ...]:
    """The statements that `migrate` would run, in one transaction. Changes nothing."""
    from surehook.ledgers.migrations.head import HEAD
    from surehook.ledgers.migrations.script import script

    current = _revision(settings)
    dialect = "sqlite" if settings.is_sqlite else "postgresql"
    return () if current == HEAD else script(current, dialect=dialect)


def _revision(settings: Settings, *, to_serve: bool = False) -> str | None:
    if not settings.is_sqlite:
        with needs("database_url", "PostgreSQL", "asyncpg", "postgres"):
            from surehook.ledgers.postgres.opening import look

        return asyncio.run(look(settings.ledger_url, to_serve=to_serve))
    from surehook.ledgers.sqlite.driver import Driver
    from surehook.ledgers.sqlite.opening import revision
    from surehook.ledgers.sqlite.session import SqliteSession

    if not settings.database_path.exists():
        return None
    session = SqliteSession(Driver(), str(settings.database_path))
    session.connect(("query_only = on",))
    try:
        return revision(session, settings.outbox_table)
    finally:
        session.close()
