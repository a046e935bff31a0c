"""Applications that write beside their own rows, each over another library. `Application.write` does both in one transaction.

Blocking ones are called in a thread of the test, the others are awaited: a test sees one form.
"""

from __future__ import annotations

import asyncio
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from surehook.core.outbox_tables import create
from surehook.outbox import Outbox


class Undo(Exception):
    """Ends a transaction without its rows."""


def ready(dialect: Any, execute: Callable[[str], Any]) -> None:
    """Make the outbox's tables, and one of the application's."""
    for statement in (*create(dialect), "CREATE TABLE document (name varchar(50))"):
        execute(statement)


OWN = "INSERT INTO document (name) VALUES ('mine')"


class Application(ABC):
    """One database, seen through one library. `keeps` False: the transaction is rolled back."""

    dialect: Any

    def __init__(self, url: str) -> None:
        self.url = url
        self.outbox = Outbox(tenant="acme")

    @abstractmethod
    async def write(self, *events: tuple[str, Any, dict[str, Any]], keeps: bool = True) -> list[str]: ...


class Blocking(Application):
    """`begin` yields a transaction; what is raised in it takes it back."""

    @abstractmethod
    def begin(self) -> Any: ...

    def own(self, tx: Any) -> None:
        tx.execute(OWN)

    def _write(self, events: tuple[tuple[str, Any, dict[str, Any]], ...], keeps: bool) -> list[str]:
        ids: list[str] = []
        try:
            with self.begin() as tx:
                self.own(tx)
                ids += [self.outbox.put(tx, type, data, **fields) for type, data, fields in events]
                if not keeps:
                    raise Undo
        except Undo:
            pass
        return ids

    async def write(self, *events: tuple[str, Any, dict[str, Any]], keeps: bool = True) -> list[str]:
        return await asyncio.to_thread(self._write, events, keeps)


class Awaited(Application):
    """`begin` yields a transaction, asynchronously."""

    @abstractmethod
    def begin(self) -> Any: ...

    async def own(self, tx: Any) -> None:
        await tx.execute(OWN)

    async def write(self, *events: tuple[str, Any, dict[str, Any]], keeps: bool = True) -> list[str]:
        ids: list[str] = []
        try:
            async with self.begin() as tx:
                await self.own(tx)
                ids += [await self.outbox.aput(tx, type, data, **fields) for type, data, fields in events]
                if not keeps:
                    raise Undo
        except Undo:
            pass
        return ids


class Sqlite3(Blocking):
    dialect = "sqlite"

    @contextmanager
    def begin(self) -> Any:
        connection = sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=30)
        try:
            with connection:
                yield connection
        finally:
            connection.close()


class Psycopg(Blocking):
    dialect = "postgresql"

    @contextmanager
    def begin(self) -> Any:
        import psycopg

        with psycopg.connect(self.url) as connection:
            yield connection


class Psycopg2(Psycopg):
    def own(self, tx: Any) -> None:
        with tx.cursor() as cursor:
            cursor.execute(OWN)

    @contextmanager
    def begin(self) -> Any:
        import psycopg2

        connection = psycopg2.connect(self.url)
        try:
            with connection:
                yield connection
        finally:
            connection.close()


class PsycopgBlock(Psycopg):
    """A connection that commits by itself, in a block of its own."""

    @contextmanager
    def begin(self) -> Any:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection, connection.transaction():
            yield connection


class PyMySql(Blocking):
    dialect = "mysql"

    def own(self, tx: Any) -> None:
        with tx.cursor() as cursor:
            cursor.execute(OWN)

    @contextmanager
    def begin(self) -> Any:
        import pymysql
        from sqlalchemy import make_url

        at = make_url(self.url)
        connection = pymysql.connect(host=at.host, port=at.port, user=at.username, database=at.database)
        try:
            yield connection
            connection.commit()
        finally:
            connection.close()


class SqlAlchemy(Blocking):
    """A Connection."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        from sqlalchemy import create_engine

        for name, driver in (("postgresql", "psycopg"), ("mariadb", "pymysql")):
            url = url.replace(f"{name}://", f"{name}+{driver}://")
        self.engine = create_engine(url)
        self.dialect = {"mariadb": "mysql"}.get(self.engine.dialect.name, self.engine.dialect.name)

    def own(self, tx: Any) -> None:
        from sqlalchemy import text

        tx.execute(text(OWN))

    @contextmanager
    def begin(self) -> Any:
        try:
            with self.engine.begin() as connection:
                yield connection
        finally:
            self.engine.dispose()


class SqlAlchemySession(SqlAlchemy):
    @contextmanager
    def begin(self) -> Any:
        from sqlalchemy.orm import Session

        try:
            with Session(self.engine) as session, session.begin():
                yield session
        finally:
            self.engine.dispose()


class Asyncpg(Awaited):
    dialect = "postgresql"

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[Any]:
        import asyncpg

        connection = await asyncpg.connect(self.url)
        try:
            async with connection.transaction():
                yield connection
        finally:
            await connection.close()


class AsyncpgPool(Awaited):
    dialect = "postgresql"

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[Any]:
        import asyncpg

        async with (
            asyncpg.create_pool(self.url, min_size=1) as pool, pool.acquire() as connection, connection.transaction(),
        ):  # fmt: skip
            yield connection


class AsyncPsycopg(Awaited):
    dialect = "postgresql"

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[Any]:
        import psycopg

        async with await psycopg.AsyncConnection.connect(self.url) as connection:
            yield connection


class AioSqlite(Awaited):
    dialect = "sqlite"

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[Any]:
        import aiosqlite

        async with aiosqlite.connect(self.url.removeprefix("sqlite:///"), timeout=30) as connection:
            yield connection
            await connection.commit()


class AsyncMy(Awaited):
    dialect = "mysql"

    async def own(self, tx: Any) -> None:
        async with tx.cursor() as cursor:
            await cursor.execute(OWN)

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[Any]:
        import asyncmy
        from sqlalchemy import make_url

        at = make_url(self.url)
        async with asyncmy.connect(
            host=at.host, port=at.port, user=at.username, database=at.database
        ) as connection:
            yield connection
            await connection.commit()


class AsyncSqlAlchemy(Awaited):
    """An AsyncConnection."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        from sqlalchemy.ext.asyncio import create_async_engine

        for name, driver in (("postgresql", "asyncpg"), ("mariadb", "asyncmy"), ("sqlite", "aiosqlite")):
            url = url.replace(f"{name}://", f"{name}+{driver}://")
        self.engine = create_async_engine(url)
        self.dialect = {"mariadb": "mysql"}.get(self.engine.dialect.name, self.engine.dialect.name)

    async def own(self, tx: Any) -> None:
        from sqlalchemy import text

        await tx.execute(text(OWN))

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[Any]:
        try:
            async with self.engine.begin() as connection:
                yield connection
        finally:
            await self.engine.dispose()


class AsyncSqlAlchemySession(AsyncSqlAlchemy):
    @asynccontextmanager
    async def begin(self) -> AsyncIterator[Any]:
        from sqlalchemy.ext.asyncio import AsyncSession

        try:
            async with AsyncSession(self.engine) as session, session.begin():
                yield session
        finally:
            await self.engine.dispose()


BY_DATABASE: dict[str, list[Callable[[str], Application]]] = {
    "sqlite": [Sqlite3, AioSqlite, SqlAlchemy, SqlAlchemySession, AsyncSqlAlchemy, AsyncSqlAlchemySession],
    "postgresql": [
        Psycopg, PsycopgBlock, Psycopg2, Asyncpg, AsyncpgPool, AsyncPsycopg, SqlAlchemy, SqlAlchemySession, AsyncSqlAlchemy,
        AsyncSqlAlchemySession,
    ],
    "mariadb": [PyMySql, AsyncMy, SqlAlchemy, SqlAlchemySession, AsyncSqlAlchemy, AsyncSqlAlchemySession],
}  # fmt: skip
