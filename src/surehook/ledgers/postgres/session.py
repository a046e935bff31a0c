"""One connection: its statements and transactions, and the meaning of its loss.

    lost before anything was sent, or inside a transaction before COMMIT     LedgerUnavailable
    lost during a writing statement of its own, or during COMMIT             CommitUnknown

A session connects when it is first used, and again after a loss. After a failed attempt it refuses at once, for a time that
doubles up to `RETRY_MOST_S`, so that an unreachable server is not flooded with attempts. Every step has a deadline: a
connection that does not answer in time is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

import asyncpg

from surehook.core.errors import CommitUnknown, LedgerError, LedgerUnavailable
from surehook.ledgers.postgres.errors import Lost, translated

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Connect: TypeAlias = Callable[[], Awaitable[Connection]]

RETRY_FIRST_S, RETRY_MOST_S = 0.05, 1.0
CLOSE_S = 1.0  # for saying goodbye: a server that is frozen hears nothing


class PostgresSession:
    """A connection and its state, for one task at a time.

    connect     makes a connection with all its settings
    patience_s  the time after which a statement's connection counts as lost
    """

    def __init__(self, connect: Connect, *, patience_s: float) -> None:
        self._connect = connect
        self._patience_s = patience_s
        self._connection: Connection | None = None
        self._in_transaction = False
        self._wait_s = 0.0
        self._not_before = 0.0

    # -- life -------------------------------------------------------------------------------------------

    async def connected(self) -> Connection:
        """Return the connection, made anew if it was lost."""
        connection = self._connection
        if connection is not None:
            if not connection.is_closed():
                return connection
            self.drop()
        loop = asyncio.get_running_loop()
        if loop.time() < self._not_before:
            raise LedgerUnavailable("the database cannot be reached; the next try is in a moment")
        try:
            self._connection = await self._connect()
        except Exception as error:
            self._wait_s = min(RETRY_MOST_S, self._wait_s * 2 or RETRY_FIRST_S)
            self._not_before = loop.time() + self._wait_s
            raise translated(error) from error
        self._wait_s = 0.0
        return self._connection

    def drop(self) -> None:
        """Drop the connection without telling the server."""
        connection, self._connection = self._connection, None
        self._in_transaction = False
        if connection is not None:
            connection.terminate()

    async def close(self) -> None:
        """Close the connection, within `CLOSE_S`."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            async with asyncio.timeout(CLOSE_S):
                await connection.close()
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            connection.terminate()

    # -- statements -------------------------------------------------------------------------------------

    async def rows(self, sql: str, *parameters: object) -> Sequence[asyncpg.Record]:
        """Run a statement that only reads, or is part of a transaction, and return its rows."""
        connection = await self._ready()
        try:
            async with asyncio.timeout(self._patience_s):
                return await connection.fetch(sql, *parameters)
        except BaseException as error:
            raise self._failed(error) from error

    async def row(self, sql: str, *parameters: object) -> asyncpg.Record | None:
        """Return the first row, or None."""
        found = await self.rows(sql, *parameters)
        return found[0] if found else None

    async def value(self, sql: str, *parameters: object) -> Any:
        """Return the first column of the first row, or None."""
        found = await self.rows(sql, *parameters)
        return found[0][0] if found else None

    async def run(self, sql: str, *parameters: object) -> int:
        """Run a writing statement inside a transaction, and return the number of rows it has written."""
        assert self._in_transaction, "a writing statement of its own is a `change`"
        connection = await self._ready()
        try:
            async with asyncio.timeout(self._patience_s):
                status = await connection.execute(sql, *parameters)
        except BaseException as error:
            raise self._failed(error) from error
        count = status.rpartition(" ")[2]
        return int(count) if count.isdecimal() else 0

    async def change(self, sql: str, *parameters: object) -> Sequence[asyncpg.Record]:
        """Run one writing statement as a transaction of its own, and return its rows.

        Raises CommitUnknown if the connection is lost meanwhile.
        """
        assert not self._in_transaction
        connection = await self._ready()
        try:
            async with asyncio.timeout(self._patience_s):
                return await connection.fetch(sql, *parameters)
        except BaseException as error:
            failed = self._failed(error)
            if isinstance(failed, Lost):
                raise CommitUnknown(str(failed)) from error
            raise failed from error

    # -- transactions -----------------------------------------------------------------------------------

    @asynccontextmanager
    async def writing(self, first: str | None = None) -> AsyncIterator[None]:
        """Run the block in a write transaction: committed when it ends, rolled back when it raises.

        `first` is a statement without parameters that is sent together with `begin`.
        """
        async with self._transaction("begin" if first is None else f"begin; {first}"):
            yield

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[None]:
        """Let all reads of the block see one instant."""
        async with self._transaction("begin isolation level repeatable read read only"):
            yield

    @asynccontextmanager
    async def _transaction(self, begin: str) -> AsyncIterator[None]:
        await self.begin(begin)
        try:
            yield
        except BaseException:
            await self.roll_back()
            raise
        await self.commit()

    async def begin(self, begin: str = "begin") -> None:
        """Begin a write transaction that goes on over several calls, until `commit` or `roll_back`."""
        assert not self._in_transaction
        await self._ready()
        self._in_transaction = True
        try:
            await self.say(begin)
        except BaseException:
            await self.roll_back()
            raise

    async def commit(self) -> None:
        """Commit what `begin` has begun. Raises CommitUnknown if the connection is lost meanwhile."""
        self._in_transaction = False
        try:
            await self.say("commit")
        except Lost as error:
            raise CommitUnknown(str(error)) from error

    async def roll_back(self) -> None:
        """Roll back the transaction, if one is open."""
        if not self._in_transaction:
            return
        self._in_transaction = False
        # On an error the connection is dropped, and the transaction with it.
        with suppress(LedgerError):
            await self.say("rollback")

    async def say(self, sql: str) -> None:
        """Run statements without parameters or rows (settings, definitions)."""
        connection = await self._ready()
        try:
            async with asyncio.timeout(self._patience_s):
                await connection.execute(sql)
        except BaseException as error:
            raise self._failed(error) from error

    # -- errors -----------------------------------------------------------------------------------------

    async def _ready(self) -> Connection:
        connection = self._connection
        if connection is not None and not connection.is_closed():
            return connection
        if self._in_transaction:
            self.drop()
            raise Lost("the connection to the database was lost inside a transaction")
        return await self.connected()

    def _failed(self, error: BaseException) -> BaseException:
        """Translate an error. If the state of the connection is unknown, it is dropped."""
        translation = translated(error)
        if isinstance(translation, Lost) or isinstance(error, asyncio.CancelledError):
            self.drop()
        return translation
