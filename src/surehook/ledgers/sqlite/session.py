"""One connection: its statements and transactions, and the one place that translates a binding's errors.

    busy, locked                                    LedgerUnavailable
    full (ENOSPC) before COMMIT                     LedgerFull
    I/O error, corruption, a COMMIT that fails      LedgerBroken, and the connection is never used again: after a
                                                    failed fsync the kernel may report the next one as done
                                                    although the pages are gone, and not every binding tells
                                                    if the transaction is in the log
    constraint, a value that cannot be stored       Unstorable, for the caller inside the ledger to handle

A broken connection is never closed, since closing would checkpoint; it ends with the process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from surehook.core.errors import LedgerBroken, LedgerError, LedgerFull, LedgerUnavailable
from surehook.ledgers.common.errors import Unstorable
from surehook.ledgers.sqlite.driver import Driver, SqliteConnection

# Columns have the types that SQLite stores.
Row: TypeAlias = tuple[Any, ...]

_BUSY, _LOCKED, _FULL, _INTERRUPT = 5, 6, 13, 9
_TOO_BIG, _CONSTRAINT, _MISMATCH, _RANGE, _ERROR = 18, 19, 20, 25, 1
# Broken connections, referenced forever so that nothing closes them.
_ABANDONED: list[SqliteConnection] = []


class Apart(Exception):
    """One of several jobs in a joint transaction failed: each must run alone."""


class SqliteSession:
    """A connection and its state, for one thread at a time."""

    def __init__(self, driver: Driver, path: str) -> None:
        self.driver = driver
        self.broken: str | None = None
        self._is_joint = False
        self._path = path
        self._connection: SqliteConnection | None = None

    # -- life -------------------------------------------------------------------------------------------

    def connect(self, pragmas: Sequence[str]) -> None:
        try:
            self._connection = self.driver.connect(self._path)
        except Exception as error:
            raise self._translated(error) from error
        for pragma in pragmas:
            self.rows(f"pragma {pragma}")

    def close(self) -> None:
        """Close the connection, unless it is broken."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self.broken is None:
            connection.close()
        else:
            _ABANDONED.append(connection)

    @property
    def connection(self) -> SqliteConnection:
        if self.broken is not None:
            raise LedgerBroken(self.broken)
        if self._connection is None:
            raise LedgerUnavailable("the ledger is not open")
        return self._connection

    # -- statements -------------------------------------------------------------------------------------

    def run(self, sql: str, parameters: object = ()) -> int:
        """Run a writing statement, and return the number of rows it has written."""
        connection = self.connection
        try:
            return self.driver.changes(connection, connection.execute(sql, parameters))
        except Exception as error:
            raise self._translated(error) from error

    def rows(self, sql: str, parameters: object = ()) -> list[Row]:
        try:
            found: list[Row] = self.connection.execute(sql, parameters).fetchall()
            return found
        except Exception as error:
            raise self._translated(error) from error

    def row(self, sql: str, parameters: object = ()) -> Row | None:
        """Return the first row, or None."""
        found = self.rows(sql, parameters)
        return found[0] if found else None

    def value(self, sql: str, parameters: object = ()) -> Any:
        """Return the first column of the first row, or None."""
        found = self.rows(sql, parameters)
        return found[0][0] if found else None

    # -- transactions -----------------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Run the block in a write transaction: committed when it ends, rolled back when it raises.

        Inside `joint` the block is part of that transaction, and raises Apart, which no work catches.
        """
        if self._is_joint:
            try:
                yield
            except Exception as error:
                raise Apart from error
            return
        self.rows("begin immediate")
        try:
            yield
        except BaseException:
            self.roll_back()
            raise
        self._commit()

    @contextmanager
    def joint(self) -> Iterator[None]:
        """Run all transactions of the block as one, and so with one wait for the disk."""
        with self.writing():
            self._is_joint = True
            try:
                yield
            finally:
                self._is_joint = False

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all reads of the block see one instant."""
        self.rows("begin")
        try:
            yield
        finally:
            self.roll_back()

    def roll_back(self) -> None:
        """Roll back the transaction, if one is open."""
        if self.broken is None and self.connection.in_transaction:
            try:
                self.rows("rollback")
            except LedgerError as error:
                self.give_up(f"a rollback failed: {error}")

    def _commit(self) -> None:
        try:
            self.connection.execute("commit")
        except Exception as error:
            self.give_up(f"a commit failed: {error}")
            raise LedgerBroken(f"a commit failed: {error}") from error

    # -- errors -----------------------------------------------------------------------------------------

    def give_up(self, why: str) -> None:
        """Never use this connection again."""
        if self.broken is None:
            self.broken = why

    def _translated(self, error: Exception) -> Exception:
        if isinstance(error, LedgerError):
            return error
        # Integers beyond eight bytes and text that is not UTF-8 never reach SQLite.
        if isinstance(error, (OverflowError, UnicodeError)):
            return Unstorable(str(error))
        if not isinstance(error, self.driver.errors):
            return error
        code = self.driver.code(error)
        if code is None:
            return Unstorable(str(error))
        primary = code & 0xFF
        if primary in (_BUSY, _LOCKED, _INTERRUPT):
            return LedgerUnavailable(f"the database is busy: {error}")
        if primary == _FULL:
            return LedgerFull(f"the disk is full: {error}")
        if primary in (_TOO_BIG, _CONSTRAINT, _MISMATCH, _RANGE):
            return Unstorable(str(error))
        if primary == _ERROR:
            # The statement does not fit the schema: a defect, not the disk.
            return LedgerUnavailable(f"the database refused a statement: {error}")
        self.give_up(f"the database failed: {error}")
        return LedgerBroken(f"the database failed: {error}")
