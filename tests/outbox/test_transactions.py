"""What is no transaction is refused with a word about what to do, before anything is written."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import create_engine

from surehook.core.errors import Problem
from surehook.core.outbox_tables import check_table, create
from surehook.outbox import Outbox
from tests.servers import MariaDb, Postgres

OUTBOX = Outbox(tenant="acme")


def code_of(tx: Any) -> str:
    with pytest.raises(Problem) as refused:
        OUTBOX.put(tx, "a", 1)
    assert refused.value.field == "tx" and refused.value.hint
    return refused.value.code


async def async_code_of(tx: Any) -> str:
    with pytest.raises(Problem) as refused:
        await OUTBOX.aput(tx, "a", 1)
    assert refused.value.field == "tx" and refused.value.hint
    return refused.value.code


async def test_an_object_of_another_kind_is_named() -> None:
    assert code_of(object()) == "unknown_transaction"
    assert await async_code_of("postgresql://localhost/app") == "unknown_transaction"


async def test_a_library_of_the_other_colour_is_told_of_the_other_call(tmp_path: Path) -> None:
    import aiosqlite

    async with aiosqlite.connect(tmp_path / "a.db") as connection:
        assert code_of(connection) == "not_blocking"
    blocking = sqlite3.connect(tmp_path / "a.db")
    assert await async_code_of(blocking) == "not_awaitable"
    blocking.close()


def test_a_sqlite_connection_that_commits_each_statement_is_refused(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    assert code_of(connection) == "no_transaction"
    connection.close()


def test_an_engine_that_commits_each_statement_is_refused(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'a.db'}", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        assert code_of(connection) == "no_transaction"
    engine.dispose()


def test_an_engine_whose_driver_commits_each_statement_is_refused(tmp_path: Path, database: str) -> None:
    url = database.replace("postgresql://", "postgresql+psycopg://")
    for made in (
        create_engine(f"sqlite:///{tmp_path / 'a.db'}", connect_args={"isolation_level": None}),
        create_engine(url, connect_args={"autocommit": True}),
    ):
        with made.connect() as connection:
            assert code_of(connection) == "no_transaction"
        made.dispose()


def test_a_cursor_keeps_the_rows_that_are_read_from_it(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "a.db")
    for statement in create("sqlite"):
        connection.execute(statement)
    cursor = connection.execute("VALUES (1), (2), (3)")
    for (number,) in cursor:
        OUTBOX.put(cursor, "a", number)
    assert connection.execute("SELECT count(*) FROM surehook_outbox").fetchone() == (3,)
    connection.close()


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"subject": UUID(int=1)}, "wrong_type"), ({"tenant": 1}, "wrong_type"), ({"tenant": ""}, "unknown_tenant"),
        ({"tenant": "a\x00"}, "unknown_tenant"), ({"subject": "\ud800"}, "bad_text"), ({"tenant": "\ud800"}, "unknown_tenant"),
    ],
)  # fmt: skip
def test_texts_that_no_database_stores_are_refused(tmp_path: Path, fields: dict[str, Any], code: str) -> None:
    connection = sqlite3.connect(tmp_path / "a.db")
    with pytest.raises(Problem) as refused:
        OUTBOX.put(connection, "a", 1, **fields)
    assert refused.value.code == code
    with pytest.raises(TypeError, match="no field 'more'"):
        OUTBOX.put(connection, "a", 1, more=1)
    connection.close()


async def test_connections_to_postgresql_that_commit_each_statement_are_refused(database: str) -> None:
    import asyncpg
    import psycopg

    with psycopg.connect(database, autocommit=True) as connection:
        assert code_of(connection) == "no_transaction"
        assert code_of(connection.cursor()) == "no_transaction"
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as awaited:
        assert await async_code_of(awaited) == "no_transaction"
    plain = await asyncpg.connect(database)
    assert await async_code_of(plain) == "no_transaction"
    await plain.close()


@pytest.mark.slow
async def test_connections_to_mysql_that_commit_each_statement_are_refused() -> None:
    import asyncmy
    import pymysql
    from sqlalchemy import make_url

    from tests import servers

    server: MariaDb = servers.mariadb()
    with server.database() as url:
        at = make_url(url)
        where: dict[str, Any] = {
            "host": at.host,
            "port": at.port,
            "user": at.username,
            "database": at.database,
        }
        connection = pymysql.connect(**where, autocommit=True)
        assert code_of(connection) == "no_transaction"
        connection.close()
        async with asyncmy.connect(**where, autocommit=True) as awaited:
            assert await async_code_of(awaited) == "no_transaction"


@pytest.mark.parametrize("name", ["", "a b", "a;b", "a.b.c", "1a", "Aa", 'a"b', "a" * 60])
def test_a_tables_name_is_checked(name: str) -> None:
    with pytest.raises(Problem, match="bad_table"):
        Outbox(table=name)
    assert check_table("app.surehook_outbox") == "app.surehook_outbox"


def test_the_right_to_insert_is_enough_on_postgresql(postgres: Postgres, database: str) -> None:
    import psycopg

    with psycopg.connect(database) as connection:
        for statement in create("postgresql"):
            connection.execute(statement)
        connection.execute("DROP ROLE IF EXISTS outbox_writer")
        connection.execute("CREATE ROLE outbox_writer")
        connection.execute("GRANT INSERT ON surehook_outbox TO outbox_writer")
        connection.commit()
        connection.execute("SET LOCAL ROLE outbox_writer")
        OUTBOX.put(connection, "a", 1)
        connection.execute("RESET ROLE")
        connection.execute("REVOKE ALL ON surehook_outbox FROM outbox_writer")
        connection.execute("DROP ROLE outbox_writer")
        assert connection.execute("SELECT count(*) FROM surehook_outbox").fetchone() == (1,)
