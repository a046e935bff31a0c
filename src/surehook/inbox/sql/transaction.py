"""One open transaction, as the port wants it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import Session
from sqlalchemy.util import await_only

from surehook.inbox.sql import (
    arriving,
    claiming,
    depth,
    direct,
    documenting,
    hastening,
    idle_timeout,
    interrupting,
    parking,
    pruning,
    settling,
    showing,
    waking,
)
from surehook.inbox.sql.contention import is_contended
from surehook.inbox.sql.deferred_begin import Writer
from surehook.inbox.sql.driver_connections import begin_notes, give, lend, take_back, was_changed
from surehook.inbox.sql.handler_commits import (
    FAILED_WITHIN,
    REFUSED,
    HandlerCommits,
    HandlerEndedIt,
    has_failed,
    is_without_savepoint,
    lost_transaction,
)
from surehook.inbox.sql.handler_sessions import SESSION_ENDED, async_session, blocking_session, has_lost_work
from surehook.inbox.sql.idle_timeout import StoreBounds
from surehook.inbox.sql.receipts import ReceiptStatements
from surehook.inbox.sql.tries import Tries
from surehook.ports.inbox import (
    Conflict,
    Contended,
    DocumentRow,
    Entry,
    HeldRun,
    Settlement,
    StepRow,
    Stored,
    StoredRequest,
    StoreError,
)
from surehook.ports.inbox_depth import Depth
from surehook.ports.inbox_pruning import FROM_THE_START, PrunedPart, PrunePlace
from surehook.ports.inbox_runs import DocumentKey, Filter, Run, State
from surehook.ports.inbox_waking import DueDocuments

T = TypeVar("T")
_SAVEPOINT = "surehook_run"


class SqlTransaction(ReceiptStatements, Tries):
    """`ports.inbox.Transaction` on a connection; `async_connection` is its other face, where there is one."""

    def __init__(
        self,
        connection: Connection,
        async_connection: AsyncConnection | None = None,
        *,
        sessions: bool = False,
        idle_ms: int | None = None,
        writer: Writer | None = None,
        within_s: float | None = None,
    ) -> None:
        self._connection = connection
        self._writer = writer
        self._idle_ms = idle_ms  # None: the database knows it, or need not
        self._within_s = within_s  # until it is cut; None: it never is
        self._async = async_connection
        self._sessions = sessions
        self._root = connection.get_transaction()
        # Kept: it is asked for thrice an event, and not to be had of a connection that is lost.
        self._info = begin_notes(connection)
        self._joins = connection.dialect.driver in direct.SEVERAL
        self._is_batch = False  # several runs are processed in this transaction
        self._stands = False  # a savepoint whose work is well, and which the next one may release
        self._is_watched = False  # what handlers say, or are given

    @property
    def connection(self) -> Connection:
        """To say something with: on SQLite, the transaction begins when this is asked for; elsewhere it is bounded then."""
        self._bind()
        return self._unbound

    @property
    def _unbound(self) -> Connection:
        """The same, for what locks nothing that a worker wants, or tells of the bound itself."""
        if self._writer is not None:
            self._writer.about_to(self._connection)
        return self._connection

    def _bind(self) -> None:
        if self._idle_ms is not None:
            idle_timeout.bind(self._connection, self._idle_ms)
            self._idle_ms = None

    def _by_the_way(self) -> int | None:
        """The bound that the next statement is to tell; None: there is none, or it is told already."""
        if self._connection.dialect.name != "postgresql":
            self._bind()
        return self._idle_ms

    def _not_begun(self) -> Writer | None:
        writer = self._writer
        return None if writer is None or writer.has_begun else writer

    def only_reads(self) -> None:
        if (late := self._not_begun()) is not None:
            late.only_reads = True

    # -- arrivals and runs: one line each, the statements are in their files ------------------------------------

    def persist(self, requests: Sequence[StoredRequest], *, careful: bool) -> list[list[Stored]]:
        bounds = None
        if self._within_s is not None:
            bounds = StoreBounds.of(self._within_s)
            idle_timeout.bind_once(self._connection, bounds.idle_ms)
        return arriving.persist(self._unbound, requests, careful=careful, bounds=bounds)

    def claim(self, *, now: int, lease_ms: int, token: bytes, limit: int) -> list[Run]:
        bounds: Any = {"now": now, "lease_ms": lease_ms, "limit": limit, "idle_ms": self._by_the_way()}
        runs = claiming.claim(self._unbound, token=token, **bounds)
        if runs:
            self._idle_ms = None
        return runs

    def hold(self, runs: Sequence[bytes], token: bytes) -> set[bytes]:
        self._is_batch = len(runs) > 1
        if not self._is_batch and (late := self._not_begun()) is not None:
            return late.hold(self._connection, runs, token)
        idle_ms = self._by_the_way()
        mine = claiming.hold(self._unbound, runs, token, idle_ms=idle_ms)
        if mine:
            self._idle_ms = None
        return mine

    def release(self, runs: Sequence[bytes], token: bytes, *, due_at: int) -> None:
        claiming.release(self.connection, runs, token, due_at=due_at)

    def put_off(self, runs: Sequence[bytes], token: bytes, *, until: int) -> None:
        claiming.put_off(self.connection, runs, token, until=until)

    def call_back(self, runs: Sequence[bytes], *, now: int) -> tuple[Collection[bytes], Collection[bytes]]:
        return claiming.call_back(self._unbound, runs, now=now)

    def next_due(self, types: Sequence[str]) -> int | None:
        return claiming.next_due(self._unbound, types)

    def settle(self, settlements: Sequence[Settlement]) -> None:
        if self._stands:
            self._well(f"RELEASE SAVEPOINT {_SAVEPOINT}")
            self._stands = False
        settling.settle(self.connection, settlements)
        self.keep_tries(settlements)

    def last_results(self, events: Sequence[bytes]) -> dict[bytes, bytes]:
        return settling.last_results(self.connection, events)

    def replay(self, wanted: Filter, *, reason: str, now: int, ids: Callable[[], bytes], limit: int) -> int:
        return settling.replay(self.connection, wanted, reason=reason, now=now, ids=ids, limit=limit)

    def decide(self, event: bytes, *, state: State, code: str | None, note: str | None, now: int) -> bool:
        return settling.decide(self.connection, event, state=state, code=code, note=note, now=now)

    def unhandled(self, *, after: bytes, limit: int) -> list[tuple[bytes, str, str | None]]:
        return parking.unhandled(self.connection, after=after, limit=limit)

    def take_up(self, runs: Sequence[bytes], *, now: int) -> int:
        return parking.take_up(self.connection, runs, now=now)

    def unpark(
        self, source: str, versions: Collection[str], *, after: bytes, limit: int, now: int
    ) -> tuple[int, bytes | None]:
        return parking.unpark(self.connection, source, versions, after=after, limit=limit, now=now)

    def entries(self, wanted: Filter, *, limit: int) -> list[Entry]:
        return showing.entries(self.connection, wanted, limit=limit)

    def conflicts(self, *, limit: int, before: bytes | None = None) -> list[Conflict]:
        return showing.conflicting(self.connection, limit=limit, before=before)

    def documents(self, keys: Sequence[DocumentKey]) -> dict[DocumentKey, DocumentRow]:
        if (late := self._not_begun()) is not None:
            return late.documents(self._connection, keys)
        return documenting.locked(self.connection, keys)

    def keep_documents(self, rows: Sequence[DocumentRow]) -> None:
        documenting.keep(self.connection, rows)

    def journal(self, steps: Sequence[StepRow]) -> None:
        documenting.journal(self.connection, steps)

    def held_runs(self, key: DocumentKey, event_ids: Sequence[str]) -> list[Run]:
        return documenting.held(self.connection, key, event_ids)

    def hasten(
        self, tenant: str, events: Sequence[tuple[str, str]], *, codes: Sequence[str], now: int
    ) -> None:
        hastening.hasten(self.connection, tenant, events, codes=codes, now=now)

    def effective_step(self, event: bytes) -> tuple[DocumentKey, str] | None:
        return documenting.effective(self.connection, event)

    def due_documents(
        self, *, types: Sequence[str], now: int, lease_ms: int, token: bytes, limit: int
    ) -> DueDocuments:
        found = waking.due(self._unbound, types=types, now=now, limit=limit)
        return waking.free(self._unbound, found, now=now, lease_ms=lease_ms, token=token)

    def lease_documents(self, keys: Collection[DocumentKey], *, until: int) -> None:
        waking.lease(self._unbound, keys, until=until)

    def runs(self, ids: Sequence[bytes]) -> list[Run]:
        return claiming.found(self._unbound, ids)

    def wake_again(self, instants: Mapping[DocumentKey, int], *, leased_until: int) -> None:
        waking.wake_again(self._unbound, instants, leased_until=leased_until)

    def held_after(self, after: bytes, *, limit: int) -> list[HeldRun]:
        return documenting.held_after(self._unbound, after, limit=limit)

    def wake(self, keys: Sequence[DocumentKey], *, now: int) -> None:
        waking.wake(self._unbound, keys, now=now)

    def unfollowed(self, types: Sequence[str], *, before: int, limit: int) -> list[tuple[str, str]]:
        return waking.unfollowed(self.connection, types, before=before, limit=limit)

    def history(
        self, document: str, *, document_type: str | None, tenant: str, limit: int = 0
    ) -> list[tuple[DocumentRow, list[str]]]:
        return documenting.history(
            self.connection, document, document_type=document_type, tenant=tenant, limit=limit
        )

    def counts(self) -> dict[tuple[str, State], int]:
        return showing.counts(self.connection)

    def depth(self, *, now: int, limit: int) -> list[Depth]:
        return depth.depth(self.connection, now=now, limit=limit)

    def prune(
        self,
        *,
        bodies_before: int,
        events_before: int,
        limit: int,
        place: PrunePlace = FROM_THE_START,
        within_s: float | None = None,
    ) -> PrunedPart:
        return pruning.prune(
            self.connection,
            bodies_before=bodies_before,
            events_before=events_before,
            limit=limit,
            place=place,
            within_s=within_s,
        )

    # -- handlers ------------------------------------------------------------------------------------------------

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Raw statements: SQLAlchemy's own bookkeeping of nested transactions costs as much as a small handler.

        The release fails where a handler swallowed an error that ended the transaction: then its work is not kept. In a batch
        it may go with the next savepoint, in one message; if that fails, the batch is done again, one by one.
        """
        if self._stands:
            self._well(f"RELEASE SAVEPOINT {_SAVEPOINT}; SAVEPOINT {_SAVEPOINT}")
            self._stands = False
        else:
            self._bind()  # what is said inside goes with a rollback
            self._say(f"SAVEPOINT {_SAVEPOINT}")
        try:
            yield
            if self.is_ended:
                raise HandlerCommits(REFUSED)
            if self._joins and self._is_batch:
                self._stands = True
            else:
                self._release()
        except StoreError:
            raise
        except BaseException as error:
            try:
                self._say(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
            except Exception as lost:
                if self._is_ended_by(error, lost):
                    raise HandlerEndedIt from error
                # MySQL ends the whole transaction on a deadlock: the neighbours' work is gone with it.
                raise lost_transaction(lost) from error
            if self._is_batch and is_contended(error):
                # The rows of the whole batch are locked until its end, in an order that no handler has chosen.
                raise Contended(f"workers wanted the same rows: {type(error).__name__}") from error
            raise

    @property
    def has_changed_session(self) -> bool:
        return was_changed(self._info)

    @property
    def is_ended(self) -> bool:
        """True if SQLAlchemy takes the transaction for ended: the handler has called commit, rollback or close. Nothing on the
        pool's connection says so, since that may be another transaction's by now."""
        root = self._root
        return root is not None and (not root.is_active or self._connection.get_transaction() is not root)

    def _release(self) -> None:
        """Keep what was done. Raises HandlerEndedIt where there is no savepoint any more, and no error that has ended it."""
        try:
            self._say(f"RELEASE SAVEPOINT {_SAVEPOINT}")
        except Exception as error:
            if self._is_ended_by(None, error):
                raise HandlerEndedIt from error
            raise

    def _is_ended_by(self, error: BaseException | None, lost: BaseException | None) -> bool:
        """Tell whether a statement of the handler ended the transaction before it raised this error, or returned: its work
        stands, and the savepoint is `lost`. An error of the database may have undone it all, and so has who cut it."""
        if self._info.get(FAILED_WITHIN) or (self._writer is not None and self._writer.is_cut):
            return False
        own = lost.orig if isinstance(lost, DBAPIError) else lost
        return is_without_savepoint(own) and not has_failed(error, self._database_error())

    def _database_error(self) -> tuple[type[BaseException], ...]:
        return (self._connection.dialect.loaded_dbapi.Error,)

    def _well(self, statement: str) -> None:
        """A statement that an earlier handler of the batch may have made impossible."""
        try:
            self._say(statement)
        except Exception as lost:
            raise lost_transaction(lost) from lost

    def _say(self, statement: str) -> None:
        if (late := self._not_begun()) is not None:
            late.say(self._connection, statement)
        else:
            direct.say(self._connection, statement)

    @contextmanager
    def tx(self, *, is_async: bool) -> Iterator[Any]:
        if not self._is_watched:
            (give if self._writer is None else self._writer.watch)(self._connection)
            self._is_watched = True
        options = lend(self._connection, self._info)
        self._info.pop(FAILED_WITHIN, None)
        try:
            if not self._sessions:
                yield self._async if is_async else self._connection
            elif is_async:
                session = async_session(self._async)
                yield session
                self.wait(session.commit())
                self.wait(session.close())
                self._check_work(session.sync_session)
            else:
                with blocking_session(self._connection) as block:
                    yield block
                    block.commit()
                self._check_work(block)
        except BaseException:  # and its traceback has what the handler was reading
            if self._writer is not None:
                self._writer.spoilt()
            raise
        finally:
            take_back(self._connection, self._info, options)

    def _check_work(self, session: Session) -> None:
        """Raises HandlerCommits where a handler has lost its work, and HandlerEndedIt where that stands all the same."""
        if has_lost_work(session):
            self._release()
            raise HandlerCommits(SESSION_ENDED)

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        is_back = False
        try:
            result = await_only(coroutine)
            is_back = True
            return result
        finally:
            # What the driver is at by then nobody waits for, and all that comes next would wait for it.
            leaves = self._writer is not None and (self._writer.has_driver or not is_back)
            if leaves and interrupting.end_statement(self._connection):
                self._info[FAILED_WITHIN] = True
