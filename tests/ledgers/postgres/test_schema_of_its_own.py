"""The ledger in a schema of its own beside an application's tables, and moved there."""

from __future__ import annotations

from urllib.parse import urlsplit

import asyncpg
import pytest

from surehook.config import Settings
from surehook.core.errors import SettingsError
from surehook.core.model import Tenant
from surehook.ledgers.postgres.ledger import PostgresLedger
from surehook.ledgers.postgres.opening import look
from tests.ledgers.making import NOW


def within(database: str, schema: str) -> str:
    return Settings.load(flags={"database_url": database, "database_schema": schema}).ledger_url


async def tenants(url: str) -> list[str]:
    ledger = PostgresLedger(url)
    await ledger.open(now=NOW)
    try:
        return [tenant.id for tenant in (await ledger.tenants(limit=10, after=None)).data]
    finally:
        await ledger.close()


async def add_tenant(url: str, name: str) -> None:
    ledger = PostgresLedger(url)
    await ledger.open(now=NOW)
    await ledger.add_tenant(Tenant(id=name, name=name, strict=False, created_at=NOW))
    await ledger.close()


async def test_a_schema_is_made_beside_an_application_s_tables(database: str) -> None:
    application = await asyncpg.connect(database)
    await application.execute("create table document (id text)")
    with pytest.raises(SettingsError, match="another program's"):
        await PostgresLedger(database).open(now=NOW)
    assert await look(within(database, "surehook"), to_serve=True) is None
    await add_tenant(within(database, "surehook"), "acme")
    assert await tenants(within(database, "surehook")) == ["acme"]
    assert await tenants(within(database, "another")) == []
    assert await application.fetchval("select count(*) from document") == 0
    found = await application.fetch("select tablename from pg_tables where schemaname = 'public'")
    assert [row[0] for row in found] == ["document"]
    await application.close()


async def test_an_existing_ledger_moves_as_the_page_says(database: str) -> None:
    await add_tenant(database, "acme")
    connection = await asyncpg.connect(database)
    await connection.execute("ALTER SCHEMA public RENAME TO surehook; CREATE SCHEMA public")
    await connection.close()
    await add_tenant(within(database, "surehook"), "beta")
    assert sorted(await tenants(within(database, "surehook"))) == ["acme", "beta"]


async def test_a_role_that_may_not_make_it_is_told(database: str) -> None:
    owner = await asyncpg.connect(database)
    await owner.execute("create role limited login")
    try:
        where = urlsplit(database)
        url = within(where._replace(netloc=f"limited@{where.hostname}:{where.port}").geturl(), "surehook")
        with pytest.raises(SettingsError, match="has no schema to work in"):
            await PostgresLedger(url).open(now=NOW)
    finally:
        await owner.execute("drop role limited")
        await owner.close()


async def test_sqlite_has_no_schemas() -> None:
    from surehook.config.sharing import check_sharing

    with pytest.raises(SettingsError, match="SQLite has no schemas"):
        check_sharing(Settings.load(flags={"database_schema": "surehook"}))
