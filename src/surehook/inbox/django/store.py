"""Transactions that are Django's: the inbox's rows and the application's objects, on one connection, in one commit.

`run` opens `transaction.atomic`, and gives SQLAlchemy the driver's connection that lies under it; so what a handler saves by
the ORM, and the mark that its event is processed, are one commit by construction. A handler's savepoint is Django's too: the
ORM remembers that an error broke the transaction, and forgets it only when its own savepoint is undone.

Inside a transaction that is open already, `run` takes part in it: an event is finalized with the work that called for it, and
a test's events vanish with the test. Only what is answered to a sender must not wait for others: `durable` refuses that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Any, TypeVar

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db import Error as DjangoError
from django.db.backends.base.base import BaseDatabaseWrapper

from surehook.core.errors import SettingsError
from surehook.inbox.django.blocks import LEFT_OPEN, LeftOpen, Unbalanced, level
from surehook.inbox.safe_log import log
from surehook.inbox.sql import borrowed, cutting, engines
from surehook.inbox.sql.deferred_begin import Writer
from surehook.inbox.sql.driver_connections import CHANGED, driver
from surehook.inbox.sql.handler_commits import (
    FAILED_WITHIN,
    REFUSED_STATEMENT,
    HandlerCommits,
    HandlerEndedIt,
)
from surehook.inbox.sql.handler_statements import traces
from surehook.inbox.sql.store_errors import step, translated
from surehook.inbox.sql.stores import BUSY, SqlStore, inside
from surehook.inbox.sql.tables import runs
from surehook.inbox.sql.transaction import SqlTransaction
from surehook.inbox.trouble import TABLES
from surehook.ports.inbox import StoreError, StoreUnavailable, Transaction

T = TypeVar("T")


class Broken(Exception):
    """A handler went on after an error that ended its part of the transaction: nothing of it would be kept."""


class DjangoTransaction(SqlTransaction):
    """The port within `transaction.atomic`; a handler's `tx` is Django's connection (`tx.alias`, `tx.cursor()`)."""

    def __init__(
        self,
        connection: Any,
        django: BaseDatabaseWrapper,
        *,
        idle_ms: int | None = None,
        writer: Writer | None = None,
        within_s: float | None = None,
    ) -> None:
        super().__init__(connection, idle_ms=idle_ms, writer=writer, within_s=within_s)
        self._django = django

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        self._bind()
        failed: BaseException | None = None  # of the handler
        lost: BaseException | None = None  # the driver's answer about the savepoint, where it is gone
        try:
            with transaction.atomic(using=self._django.alias):
                depth = len(self._django.savepoint_ids)
                try:
                    yield
                except BaseException as error:
                    if len(self._django.savepoint_ids) != depth:
                        level(self._django, depth)
                    failed, lost = error, self._undone()
                    raise
                if len(self._django.savepoint_ids) != depth:
                    level(self._django, depth)
                    raise LeftOpen(LEFT_OPEN)
                if self._django.needs_rollback:
                    raise Broken(
                        "an error of the database was caught; use transaction.atomic() round what may fail"
                    )
        except Unbalanced:
            raise
        except BaseException as error:
            if self._django.needs_rollback:  # the savepoint was gone as well: so is the neighbours' work
                if self._is_ended_by(failed, lost or error.__cause__):
                    raise HandlerEndedIt from error
                raise StoreError("the transaction was lost in a handler") from error
            raise

    def _undone(self) -> Exception | None:
        """Undo what the handler did before Django does, which keeps the driver's answer to itself; the error, if it fails."""
        try:
            with closing(self._django.connection.cursor()) as cursor:
                cursor.execute(f"ROLLBACK TO SAVEPOINT {self._django.savepoint_ids[-1]}")
        except Exception as error:
            return error
        return None

    def _database_error(self) -> tuple[type[BaseException], ...]:
        return (*super()._database_error(), DjangoError)

    @contextmanager
    def tx(self, *, is_async: bool) -> Iterator[Any]:
        self._info.pop(FAILED_WITHIN, None)
        with self._django.execute_wrapper(self._noting):
            yield self._django

    def _noting(self, then: Callable[..., object], *statement: object) -> object:
        """Run a statement; note that it has changed more than rows, or failed: it may have ended the transaction, and the handler
        may catch it."""
        found = traces(statement[0], self._django.vendor)
        if found.ends:
            raise HandlerCommits(REFUSED_STATEMENT)
        if found.changes:
            self._info[CHANGED] = True
        try:
            return then(*statement)
        except Exception:
            self._info[FAILED_WITHIN] = True
            raise


class DjangoWriterLock:
    """SQLite's one writer, for the threads of this process: what is to happen on commit happens in here, and may ask the inbox,
    so a thread may take it twice. It may be given for a thread by another one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner: int | None = None
        self._taken = 0

    def take(self) -> None:
        if self._owner != threading.get_ident():
            if not self._lock.acquire(timeout=engines.BUSY_MS / 1000):
                raise StoreUnavailable(BUSY)
            self._owner = threading.get_ident()
        self._taken += 1

    def give(self) -> None:
        self._taken -= 1
        if not self._taken:
            self._owner = None
            self._lock.release()


class DjangoWriter(Writer):
    """One of Django's transactions on SQLite: it is begun, and has taken nothing yet."""

    def _open(self, connection: Any) -> None:
        if not self.only_reads:
            connection.exec_driver_sql(f"UPDATE {runs.name} SET state = state WHERE 0")

    def _undo(self, connection: Any) -> None:
        """Nothing: Django rolls back, and nothing was written."""

    def _peeked(self, connection: Any, read: Callable[[], T]) -> T:
        found = super()._peeked(connection, read)
        own = driver(connection)
        own.execute("COMMIT")  # a reader that becomes a writer may be refused at once, without waiting
        own.execute("BEGIN")
        return found

    def wrapper(self, connection: Any) -> Callable[..., object]:
        """For Django's statements: the first one takes the writer's place. Savepoints take nothing."""

        def execute(then: Callable[..., object], sql: str, *rest: object) -> object:
            if not sql.startswith(("SAVEPOINT", "RELEASE", "ROLLBACK")):
                self.about_to(connection)
            return then(sql, *rest)

        return execute


class DjangoStore(SqlStore):
    """`ports.inbox.Store` on a database of Django, by its alias."""

    def __init__(self, alias: str = DEFAULT_DB_ALIAS) -> None:
        self.alias = alias
        django: Any = connections[alias]
        driver = django.Database.__name__.partition(".")[0]
        super().__init__(borrowed.engine(driver, lambda: connections[alias].connection))
        self._one_writer = DjangoWriterLock()

    def forked(self) -> None:
        super().forked()
        self._between: set[int] = set()  # threads that are workers', and in no transaction of ours

    @contextmanager
    def own_thread(self) -> Iterator[None]:
        """The calling thread is a worker's: but for the inbox and its handlers, nobody is in a transaction there. Its connection
        is closed at the end, which Django would not do."""
        thread = threading.get_ident()
        self._between.add(thread)
        try:
            yield
        finally:
            self._between.discard(thread)
            self.let_go()

    def run(self, work: Callable[[Transaction], T], within_s: float | None = None) -> T:
        return self._run(work, within_s, durable=False)

    def durable(self, work: Callable[[Transaction], T], within_s: float | None = None) -> T:
        """The same, committed when it returns. Raises RuntimeError inside a transaction that somebody else has to commit."""
        return self._run(work, within_s, durable=True)

    def _run(self, work: Callable[[Transaction], T], within_s: float | None, *, durable: bool) -> T:
        thread = threading.get_ident()
        with ExitStack() as stack:
            if thread in self._between:
                self._between.discard(thread)
                stack.callback(self._between.add, thread)
                self._reset_if_left()
            django: Any = connections[self.alias]
            writer = DjangoWriter(self._one_writer) if django.vendor == "sqlite" else None
            is_own = not django.in_atomic_block
            if is_own:
                stack.callback(self._reset_if_left)
            if writer is not None:
                stack.callback(self._ended, writer)
            stack.enter_context(translated(_step))
            stack.enter_context(self._errors())
            # Somebody else's transaction is not the inbox's to end.
            deadline = stack.enter_context(self._within(within_s if is_own else None, writer))
            stack.enter_context(transaction.atomic(using=self.alias, durable=durable))
            connection = stack.enter_context(self.engine.connect())
            if deadline is not None:
                deadline.connected(lambda: cutting.cut(driver(connection)))
            if writer is not None:
                if not is_own or django.transaction_mode not in (None, "DEFERRED"):
                    writer.begin(connection)
                stack.enter_context(django.execute_wrapper(writer.wrapper(connection)))
            with self._known(connection, writer):
                # Somebody else's transaction is not the inbox's to bound.
                idle_ms = self.idle_ms if is_own else None
                inbox_transaction = DjangoTransaction(
                    connection, django, idle_ms=idle_ms, writer=writer, within_s=within_s if is_own else None
                )
                result = inside(connection, inbox_transaction, work, writer)
            if django.needs_rollback:
                raise StoreError("the transaction was lost, and nobody said so")
            if is_own and len(django.atomic_blocks) != 1:
                raise StoreError(LEFT_OPEN)
            if len(django.atomic_blocks) == 1:
                # Handlers of several events were here: what one of them left for after the commit may fail, and Django
                # logs that, but it must neither stop what the others left nor look like a transaction that failed.
                django.run_on_commit = [(sids, function, True) for sids, function, _ in django.run_on_commit]
        return result

    def _ended(self, writer: Writer) -> None:
        writer.end()
        if writer.is_cut and not connections[self.alias].in_atomic_block:
            connections[self.alias].close()  # nothing can be written through it

    def _reset_if_left(self) -> None:
        """Let go of a connection on which a block was left open, where nobody can be in one: it would never be committed."""
        django: Any = connections[self.alias]
        if django.in_atomic_block:
            log.warning("%s; the connection is closed, and what was not committed on it is undone", LEFT_OPEN)
            with suppress(Exception):  # it may be cut
                django.close()
            del connections[self.alias]  # with all that it believes about its transaction

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Django's errors as SQLAlchemy's; a connection that is no good any more is not kept."""
        try:
            yield
        except Exception as error:
            ours = not isinstance(error, DjangoError)
            if not ours or getattr(error, "connection_invalidated", False):
                self._drop_if_unusable()
            if ours:
                raise
            if error.__cause__ is None:
                raise StoreError(f"{error.__class__.__name__}: {error}") from error
            raise borrowed.wrapped(self.engine, error.__cause__) from error

    def _drop_if_unusable(self) -> None:
        django: Any = connections[self.alias]
        if not django.in_atomic_block:
            django.close_if_unusable_or_obsolete()

    def let_go(self) -> None:
        """Close the calling thread's connection: for threads that Django does not know of."""
        connections[self.alias].close()

    def create(self) -> None:
        raise SettingsError("tables", "Django makes them", hint="manage.py migrate")

    def close(self) -> None:
        """Nothing: connections are Django's."""


def _step(said: str) -> str | None:
    """Suggest what to do about a database's error, in Django's words."""
    found = step(said)
    if found is None or not found.startswith(TABLES):
        return found
    app = __package__ or ""
    return f"{TABLES}: `manage.py migrate` makes them" + (
        "" if apps.is_installed(app) else f", with {app} in INSTALLED_APPS"
    )
