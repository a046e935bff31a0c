"""The rows of an outbox in PostgreSQL, MySQL or MariaDB, and SQLite, over SQLAlchemy.

Who reads is decided by a lock that ends with its holder: on PostgreSQL an advisory lock of the transaction that reads and
removes, so that poolers do no harm; on MySQL a lock of the connection; on SQLite, where a transaction would keep writers out, a
lock on a file beside the database.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

from msgspec.structs import replace
from sqlalchemy import DDL, URL, Connection, Engine, bindparam, create_engine, inspect, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from surehook.core.outbox import COLUMNS, READ, OutboxCount, OutboxRow, written_at
from surehook.core.outbox_answers import RefusedRow
from surehook.core.outbox_tables import READS, TABLE, Dialect, check_table, counting, create, next_rows
from surehook.ports.outbox import RowsAway

R = TypeVar("R")
CLOSE_S = 5.0  # for a call that is under way

_COLUMNS = ", ".join(COLUMNS)


class RowsInDatabase:
    """One connection to the database of an engine."""

    def __init__(self, engine: Engine, *, table: str = TABLE, clock: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._table = check_table(table)
        self._clock = clock
        name = engine.dialect.name
        self.dialect: Dialect = {"postgresql": "postgresql", "sqlite": "sqlite"}.get(name, "mysql")  # type: ignore[assignment]
        self._connection: Connection | None = None
        self._lock: int | None = None

    # -- for a relay --------------------------------------------------------------------------------------

    def take(self, limit: int, size: int, resting: Collection[str]) -> list[OutboxRow] | None:
        return self._asked(lambda: self._take(limit, size, resting))

    def settle(self, published: Sequence[int], refused: Sequence[RefusedRow]) -> None:
        self._asked(lambda: self._settle(published, refused))

    def release(self) -> None:
        self._asked(lambda: self._connected().rollback())

    def close(self) -> None:
        self._drop()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        self._engine.dispose()

    def _take(self, limit: int, size: int, resting: Collection[str]) -> list[OutboxRow] | None:
        if not self._is_ours():
            self._connected().rollback()
            return None
        where = "tenant NOT IN :resting" if resting else "1 = 1"
        statement = text(next_rows(self._table, where, most=":most", size=":size"))
        given: dict[str, object] = {"most": limit, "size": size}
        if resting:
            statement = statement.bindparams(bindparam("resting", expanding=True))
            given["resting"] = list(resting)
        rows = [_sound(OutboxRow(*row)) for row in self._connected().execute(statement, given)]
        if self.dialect != "postgresql":
            self._connected().rollback()
        return rows

    def _is_ours(self) -> bool:
        """True if nobody else reads."""
        if self.dialect == "sqlite":
            return self._has_file()
        if self.dialect == "postgresql":
            ask = f"SELECT pg_try_advisory_xact_lock(({READS}::bigint << 32) + '{self._table}'::regclass::oid::bigint)"
        else:
            schema = "'" if "." in self._table else "coalesce(database(), ''), '."
            ask = f"SELECT get_lock(md5(concat({schema}{self._table}')), 0)"  # names have 64 characters
        return bool(self._connected().execute(text(ask.replace("::", "\\:\\:"))).scalar())

    def _has_file(self) -> bool:
        if self._lock is None:
            database = self._engine.url.database
            if not database or database == ":memory:" or "mode=memory" in database:
                return True
            self._lock = _open_beside(Path(database).resolve())
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _settle(self, published: Sequence[int], refused: Sequence[RefusedRow]) -> None:
        connection = self._connected()
        now = int(self._clock() * 1000)
        for row in refused:
            connection.execute(
                text(
                    f"INSERT INTO {self._table}_refused (position, {_COLUMNS}, code, reason, refused_at) "
                    f"SELECT position, {_COLUMNS}, :code, :reason, :now FROM {self._table} WHERE position = :position"
                ),
                {"position": row.position, "code": row.code, "reason": row.reason, "now": now},
            )
        self._remove(self._table, "position", [*published, *(row.position for row in refused)])
        connection.commit()

    def _remove(self, table: str, column: str, values: Sequence[int]) -> None:
        statement = text(f"DELETE FROM {table} WHERE {column} IN :these").bindparams(
            bindparam("these", expanding=True)
        )
        self._connected().execute(statement, {"these": list(values)})

    # -- for people -----------------------------------------------------------------------------------------

    def count(self) -> OutboxCount:
        """Count what waits and what was put aside."""

        def ask() -> OutboxCount:
            found = self._connected().execute(text(counting(self._table))).one()
            self._connected().rollback()
            counted = OutboxCount(*found)
            return replace(counted, oldest_at=written_at(counted.oldest_at))

        return self._asked(ask)

    def create(self) -> bool:
        """Make the tables; False: they are there."""

        def make() -> bool:
            connection = self._connected()
            there = inspect(connection)
            schema, _, name = self._table.rpartition(".")
            found = there.has_table(name, schema=schema or None)
            for statement in () if found else create(self.dialect, self._table):
                connection.exec_driver_sql(statement)
            connection.commit()
            return not found

        return self._asked(make)

    def waiting(self, limit: int) -> list[OutboxRow]:
        """The next rows, whoever reads."""
        statement = text(f"SELECT {', '.join(READ)} FROM {self._table} ORDER BY position LIMIT :most")
        return self._asked(lambda: self._rows(statement, limit))

    def aside(self, limit: int) -> list[tuple[OutboxRow, str, str, int]]:
        """Rows that are put aside, oldest first: the row, code, reason, and when (Unix milliseconds)."""
        statement = text(
            f"SELECT {', '.join(READ)}, code, reason, refused_at FROM {self._table}_refused ORDER BY number LIMIT :most"
        )

        def ask() -> list[tuple[OutboxRow, str, str, int]]:
            found = self._connected().execute(statement, {"most": limit}).all()
            self._connected().rollback()
            return [(_sound(OutboxRow(*row[:-3])), row[-3], row[-2], row[-1]) for row in found]

        return self._asked(ask)

    def retry(self, limit: int) -> int:
        """Put rows that are aside into the outbox again, behind all others; returns their number."""

        def move() -> int:
            connection, aside = self._connected(), f"{self._table}_refused"
            found = connection.execute(
                text(f"SELECT number FROM {aside} ORDER BY number LIMIT :most"), {"most": limit}
            )
            numbers = [number for (number,) in found]
            if numbers:
                moving = text(
                    f"INSERT INTO {self._table} ({_COLUMNS}) SELECT {_COLUMNS} FROM {aside} "
                    "WHERE number IN :numbers ORDER BY number"
                ).bindparams(bindparam("numbers", expanding=True))
                connection.execute(moving, {"numbers": numbers})
                self._remove(aside, "number", numbers)
            connection.commit()
            return len(numbers)

        return self._asked(move)

    def prune(self, before_ms: int) -> int:
        """Delete rows that were put aside before this instant; returns their number."""

        def delete() -> int:
            statement = text(f"DELETE FROM {self._table}_refused WHERE refused_at < :before")
            count = self._connected().execute(statement, {"before": before_ms}).rowcount
            self._connected().commit()
            return count

        return self._asked(delete)

    # -- the connection ---------------------------------------------------------------------------------------

    def _rows(self, statement: object, limit: int) -> list[OutboxRow]:
        found = self._connected().execute(statement, {"most": limit}).all()  # type: ignore[call-overload]
        self._connected().rollback()
        return [_sound(OutboxRow(*row)) for row in found]

    def _connected(self) -> Connection:
        if self._connection is None:
            connection = self._engine.connect()
            if self.dialect != "sqlite":
                # What is read after the lock is what others have left, whatever the database's default is.
                connection = connection.execution_options(isolation_level="READ COMMITTED")
            else:
                # What is no UTF-8 is put aside for it; reading it has to succeed first.
                driver = connection.connection.driver_connection
                assert driver is not None
                driver.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
            self._connection = connection
        return self._connection

    def _asked(self, work: Callable[[], R]) -> R:
        """Do it. Raises RowsAway, and lets go of the connection with all that it had taken."""
        try:
            return work()
        except (SQLAlchemyError, OSError) as error:
            self._drop()
            said = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
            raise RowsAway(" ".join(str(said).split())) from error

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()


def rows_over(driver: str, database: str | None, connect: Callable[[], object]) -> RowsInDatabase:
    """Rows over connections that somebody else makes. `driver`: SQLAlchemy's name of it, such as `postgresql+psycopg`;
    `database`: the file of SQLite."""
    return RowsInDatabase(create_engine(URL.create(driver, database=database), creator=connect))


def defining(statement: str) -> DDL:
    """A statement that makes or removes a table, as SQLAlchemy runs and prints it."""
    return DDL(statement.replace("%", "%%"))  # type: ignore[no-untyped-call]


def _open_beside(database: Path) -> int:
    """Open the file for the lock, with the rights and the owner of the database: as root made it, its owner takes it too."""
    like = database.stat()
    lock = os.open(f"{database}-outbox", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with suppress(OSError):
        os.fchmod(lock, like.st_mode & 0o666)
        os.fchown(lock, like.st_uid, like.st_gid)
    return lock


def _sound(row: OutboxRow) -> OutboxRow:
    """A row whose time is one: a column of SQLite takes anything."""
    return row if written_at(row.created_at) is not None else replace(row, created_at=None)


class RowsInThread:
    """Implements `ports.outbox.RowStore`: `RowsInDatabase` in a thread of its own, one call after another.

    A database that does not answer holds the thread for as long as it likes, and nobody else: `close` waits `CLOSE_S`, and the
    thread keeps no process alive. What it had taken is given back when its connection ends.
    """

    def __init__(
        self, rows: RowsInDatabase, *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        self._rows = rows
        self._sleep = sleep
        self._is_closed = False
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        Thread(target=self._work, name="outbox", daemon=True).start()

    async def take(self, limit: int, size: int, resting: Collection[str]) -> list[OutboxRow] | None:
        return await self._do(partial(self._rows.take, limit, size, resting))

    async def settle(self, published: Sequence[int], refused: Sequence[RefusedRow]) -> None:
        await self._do(partial(self._rows.settle, published, refused))

    async def release(self) -> None:
        await self._do(self._rows.release)

    async def idle(self, seconds: float) -> None:
        await self.release()
        await self._sleep(seconds)

    async def count(self) -> OutboxCount:
        return await self._do(self._rows.count)

    async def look(self) -> None:
        """Raise RowsAway where rows cannot be read."""
        await self._do(partial(self._rows.waiting, 1))

    async def close(self) -> None:
        if not self._is_closed:
            closing = asyncio.ensure_future(self._do(self._rows.close))
            await asyncio.wait([closing], timeout=CLOSE_S)
            self._is_closed = True
            self._jobs.put(None)

    async def _do(self, call: Callable[[], R]) -> R:
        if self._is_closed:
            raise RowsAway("its connection is closed")
        answer: Future[R] = Future()
        self._jobs.put(partial(_answer, answer, call))
        return await asyncio.wrap_future(answer)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


def _answer(answer: Future[R], call: Callable[[], R]) -> None:
    if not answer.set_running_or_notify_cancel():
        return
    try:
        answer.set_result(call())
    except BaseException as error:  # it is raised where the answer is waited for
        answer.set_exception(error)
