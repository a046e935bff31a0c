"""Engines that the inbox makes from URLs."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import create_async_engine

from surehook.inbox import AsyncInbox, Inbox
from surehook.inbox.sql import engines
from tests import servers
from tests.inbox.house import House, partner

OTHERS = "select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '{}' and backend_type = 'client backend'"


def cut(server: servers.Postgres, url: str) -> None:
    """Every connection to the database ends, without its owner's doing."""
    server.ask(OTHERS.format(url.rpartition("/")[2]))


def test_a_connection_that_died_while_idle_is_replaced_unnoticed() -> None:
    server = servers.postgres()
    with server.database() as url:
        engine = engines.engine(url, asked_s=0.0)
        for _ in range(2):
            with engine.begin() as connection:
                assert connection.execute(text("select 1")).scalar() == 1
            cut(server, url)
        engine.dispose()


def test_an_asynchronous_connection_that_died_while_idle_is_replaced_unnoticed() -> None:
    server = servers.postgres()

    async def go(url: str) -> None:
        engine = engines.async_engine(url, asked_s=0.0)
        for _ in range(2):
            async with engine.begin() as connection:
                assert (await connection.execute(text("select 1"))).scalar() == 1
            await asyncio.to_thread(cut, server, url)
        await engine.dispose()

    with server.database() as url:
        asyncio.run(go(url))


@pytest.mark.parametrize("make", [engines.engine, engines.async_engine])
def test_an_engine_from_a_url_has_connections_for_the_most_workers_and_who_stores(make) -> None:
    pool = make("postgresql://nobody@127.0.0.1:1/none").pool
    assert pool.size() + pool._max_overflow > 64


def test_sqlite_gives_out_the_connection_whose_cache_is_current(tmp_path) -> None:
    engine = engines.engine(f"sqlite:///{tmp_path / 'app.db'}")
    with engine.connect() as used_last, engine.connect():
        expected = used_last.connection.dbapi_connection
    for _ in range(2):
        with engine.connect() as given:
            assert given.connection.dbapi_connection is expected
    engine.dispose()


@pytest.mark.parametrize("make", [engines.engine, engines.async_engine])
def test_a_database_in_memory_has_an_engine(make) -> None:
    assert make("sqlite://").dialect.name == "sqlite"


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize(("workers", "is_told"), [(2, True), (1, False)])
def test_workers_that_would_use_up_a_pool_of_the_applications_are_told_of(
    kind, workers, is_told, tmp_path, runner, caplog
) -> None:
    url = f"sqlite+{'pysqlite' if kind == 'sync' else 'aiosqlite'}:///{tmp_path / 'inbox.db'}"
    make = create_engine if kind == "sync" else create_async_engine
    house = House(kind, f"sqlite:///{tmp_path / 'other.db'}", runner)
    house.close()
    engine = make(url, pool_size=1, max_overflow=1)
    house.inbox = (Inbox if kind == "sync" else AsyncInbox)(engine, [partner()])
    house.prepare()

    async def begin():
        house.inbox.start(workers)

    house.do(begin())
    house.close()
    assert ("2 workers on a pool of 2 connections" in caplog.text) is is_told
    assert ("pool_size=3" in caplog.text) is is_told
