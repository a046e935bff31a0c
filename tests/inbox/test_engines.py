"""Engines that the inbox makes from URLs."""

from __future__ import annotations

import asyncio

from sqlalchemy import text

from surehook.inbox.sql import engines
from tests import servers

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
