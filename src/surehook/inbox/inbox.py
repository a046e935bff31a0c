"""`Inbox`, for callers that block; `AsyncInbox` has the same names."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar, Unpack

from sqlalchemy import URL, Connection, Engine
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.orm import Session

from surehook.core import effects
from surehook.core.effects import Script
from surehook.core.errors import SettingsError
from surehook.core.sources.provider import Reply
from surehook.inbox import operations
from surehook.inbox.asgi import BODY_S, AsgiApp
from surehook.inbox.backoff import Backoff
from surehook.inbox.base import BaseInbox
from surehook.inbox.bounded import Bounded
from surehook.inbox.definitions import Definitions
from surehook.inbox.event import Event
from surehook.inbox.group_commit import DRAIN_S, AsyncGroupCommit, GroupCommit
from surehook.inbox.handlers import HandlerOptions, Returned
from surehook.inbox.no_workers import NoWorkersWatch
from surehook.inbox.operations import EventDetails, EventQuery, EventRow
from surehook.inbox.queue.option import Queue
from surehook.inbox.queue.port import Broker, Length
from surehook.inbox.queue.threads import BlockingMover
from surehook.inbox.receipt_sender import BLOCKING
from surehook.inbox.receive import IncomingRequest
from surehook.inbox.retention import Keep
from surehook.inbox.rules import Rules, checked_workers
from surehook.inbox.sources.source import Source
from surehook.inbox.sql import engines, idle_timeout
from surehook.inbox.sql.loop_store import LoopStore
from surehook.inbox.sql.stores import SqlStore
from surehook.inbox.sql.transaction_deadlines import STORE_S
from surehook.inbox.worker_threads import WorkerThreads
from surehook.inbox.wsgi import WsgiApp
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy
from surehook.ports.inbox_depth import Depth
from surehook.ports.inbox_pruning import Pruned

# A union of two, and no `Connection | Session`: a handler takes the one that its inbox gives.
ConnectionHandler = TypeVar(
    "ConnectionHandler",
    bound=Callable[[Event, Connection], Returned] | Callable[[Event, Session], Returned],
)


class Inbox(BaseInbox[SqlStore]):
    """A durable inbox on an engine or URL of SQLAlchemy, for WSGI, threads, and ASGI with blocking handlers.

    engine    an `Engine`, or a URL (`postgresql://…`, `sqlite:///app.db`, `mysql://…`); or a store, as Django's inbox has one
    sources   who may send, see `surehook.inbox.sources`
    sessions  True: handlers get an ORM `Session` in place of the `Connection`
    backoff   how failed events are tried again
    rules     how workers work
    keep      how long finished events are kept: workers remove them; None: as `prune` is told
    queue     `amqp://…`, `redis://…` or a `Queue`: senders are answered when it has confirmed; None: when the table has
    """

    connect = staticmethod(BLOCKING)

    def __init__(
        self,
        engine: Engine | URL | str | SqlStore,
        sources: Iterable[Source] = (),
        *,
        sessions: bool = False,
        backoff: Backoff | None = None,
        rules: Rules | None = None,
        keep: Keep | None = None,
        queue: Queue | Broker | str | None = None,
        clock: Clock | None = None,
        entropy: Entropy | None = None,
    ) -> None:
        super().__init__(
            sources, may_wait=False, backoff=backoff, rules=rules, keep=keep, queue=queue, clock=clock,
            entropy=entropy,
        )  # fmt: skip
        if isinstance(engine, AsyncEngine):
            raise SettingsError(
                "engine",
                "an AsyncEngine needs an AsyncInbox",
                hint="AsyncInbox(engine), or Inbox(url)",
            )
        made = (
            engines.engine(engine, read_s=self.rules.lease_ms / 1000)
            if isinstance(engine, URL | str)
            else engine
        )
        if not isinstance(made, Engine | SqlStore):
            raise engines.no_engine(made)
        self.store = made if isinstance(made, SqlStore) else SqlStore(made, sessions=sessions)
        if made is engine:
            idle_timeout.restore(self.store.engine)
        self.store.idle_ms = round(self.rules.within_s * 1000)
        self._working = Bounded(self.store, self.rules.lease_ms / 1000)
        self._storing = Bounded(self.store, STORE_S)
        self._group_commit = GroupCommit(self._storing, self.clock.boot)
        self.woken = self._signal()
        self.pool = WorkerThreads(
            self.worker,
            self.run_worker,
            self.store.cut,
            self.store.has_ended,
            self.calls,
            stop_s=self.rules.stop_s,
        )
        self.no_workers = NoWorkersWatch(self.clock.now, self.clock.boot, lambda: bool(self.pool.members))
        self._executor: ThreadPoolExecutor | None = None
        self._loop_store: LoopStore | None = None
        self._async_group_commit: AsyncGroupCommit | None = None

    def _signal(self) -> threading.Event:
        return threading.Event()

    # -- receiving -----------------------------------------------------------------------------------------------

    def wsgi(self, *, body_s: float = BODY_S) -> WsgiApp:
        """A WSGI application: POST /SOURCE. A body has `body_s` seconds to come; silence is the server's to end."""
        return WsgiApp(self.receiver, self.receive, boot=self.clock.boot, body_s=body_s)

    def asgi(self, *, body_s: float = BODY_S) -> AsgiApp:
        """An ASGI application: POST /SOURCE. A body has `body_s` seconds to come. A thread writes."""
        return AsgiApp(self.receiver, self.receive_async, body_s=body_s)

    def receive(self, call: IncomingRequest) -> Reply:
        """Judge, store and answer one request whose head was let through. Never raises."""
        judged = self.receiver.judge(call, now=self.clock.now())
        if isinstance(judged, Reply):
            return judged
        try:
            if self.queue and self.queue.confirmed(judged):
                return judged.success
            ends = self._group_commit.put(judged.request)
        except Exception as error:
            return self.unstored(judged, error)
        self.stored(judged.request, ends)
        if self.no_workers.is_due():
            self._look_for_workers()
        return judged.reply(ends)

    async def receive_async(self, call: IncomingRequest) -> Reply:
        """`receive` for callers in an event loop."""
        judged = self.receiver.judge(call, now=self.clock.now())
        del call  # while this waits for a commit, hundreds of others do: see `Taken`
        if isinstance(judged, Reply):
            return judged
        try:
            if self.queue and await self.queue.confirmed_async(judged):
                return judged.success
            ends = await self._from_loop().put(judged.request)
        except Exception as error:
            return self.unstored(judged, error)
        self.stored(judged.request, ends)
        self.no_workers.arrived(self._look_from_loop)
        return judged.reply(ends)

    def _look_for_workers(self) -> bool:
        return effects.run(self._look_for_work())

    async def _look_from_loop(self) -> bool:
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._look_for_workers)

    def _from_loop(self) -> AsyncGroupCommit:
        if self._async_group_commit is None:
            # One writer: batches, not threads, give speed.
            self._executor = ThreadPoolExecutor(1, "surehook-inbox")
            self._loop_store = LoopStore(self.store, self._executor, self.clock.boot)
            self._async_group_commit = AsyncGroupCommit(self._loop_store, self.clock.boot)
        return self._async_group_commit

    # -- handlers ------------------------------------------------------------------------------------------------

    def on(  # type: ignore[override]  # fewer functions are taken than by `Definitions`, which speaks for both inboxes
        self, source: str, pattern: str = "*", **options: Unpack[HandlerOptions]
    ) -> Callable[[ConnectionHandler], ConnectionHandler]:
        return super().on(source, pattern, **options)

    def on_undo(  # type: ignore[override]  # likewise
        self, source: str, pattern: str = "*", *, name: str | None = None, timeout_s: float | None = None
    ) -> Callable[[ConnectionHandler], ConnectionHandler]:
        return super().on_undo(source, pattern, name=name, timeout_s=timeout_s)

    on.__doc__, on_undo.__doc__ = Definitions.on.__doc__, Definitions.on_undo.__doc__

    # -- working -------------------------------------------------------------------------------------------------

    def start(self, workers: int = 1) -> None:
        """Process, and tell senders that asked, in threads of this process. Raises SettingsError for less than one worker."""
        engines.suffices(self.store.engine.pool, checked_workers(workers))
        self.pool.start(workers, self._jobs())

    def _mover(self) -> BlockingMover:
        return BlockingMover(
            lambda store: self.queue.mover(store, self.stored),
            lambda requests: self._group_commit.put_all(requests),
        )

    def run_worker(self, script: Script[None]) -> None:
        """Run one thread of `start`: overridden where a thread has something to let go at its end."""
        effects.run(script)

    def stop(self) -> None:
        """End the workers after the handler that each is in. What hangs after `Rules.stop_s` seconds is left behind, logged, and
        done again."""
        effects.run(self.pool.stopping())
        self._say_left_out()

    def work(self) -> int:
        """Process here what is due, until nothing is; how many turns it took. For tests and scripts."""
        return effects.run(self.worker().until_idle())

    def move(self) -> int:
        """Take here what waits in the queue into the table, until nothing does; how many requests. For tests and scripts; `start`
        does so all the time. Raises QueueAway, StoreError."""
        return self._mover().until_empty() if self.queue else 0

    def queued(self) -> Length | None:
        """Count the messages in the queue; None: there is no queue. Raises QueueAway."""
        return self.queue.length_now()

    def send_receipts(self) -> int:
        """Tell senders here what is due, until nothing is; how many receipts were tried. For tests and scripts."""
        return effects.run(self._receipt_sender().until_done())

    @asynccontextmanager
    async def running(self, workers: int = 1) -> AsyncIterator[None]:
        """Workers within a lifespan of your own: `async with inbox.running(workers=4): yield`."""
        self.start(workers)
        try:
            yield
        finally:
            await asyncio.to_thread(self.stop)
            if self._async_group_commit is not None:
                await self._async_group_commit.drained(DRAIN_S)
            await self.queue.close_async()

    # -- operations ----------------------------------------------------------------------------------------------

    def create_tables(self) -> None:
        """Make the tables that are missing."""
        self.store.create()

    def close(self) -> None:
        """Stop the workers and let the connections go."""
        self.stop()
        self.no_workers.close()
        self.queue.close()
        if self._loop_store is not None:
            self._loop_store.close()
        if self._executor is not None:
            self._executor.shutdown()
        self.store.close()

    def finalize(self, ref: str, note: str = "") -> bool:
        """Say that a processed event stands; whether it was waiting for that. From any process."""
        return effects.run(self._decide(ref, "finalized", None, note))

    def reject(self, ref: str, code: str, note: str = "") -> bool:
        """Say that a processed event does not stand; whether it was waiting for that. It can be replayed. If it moved a
        document, that goes back, or where `rejected` of its table says."""
        return effects.run(self._decide(ref, "rejected", code, note))

    def release(
        self, document: str, *, by: str, reason: str, document_type: str | None = None, tenant: str = ""
    ) -> bool:
        """Let a document go on behind a conflict, or without what is missing up to the first event that waits; whether
        anything is held for it. From any process; the next worker does it. `by` and `reason` are in the journal."""
        return effects.run(self._release(document, document_type, tenant, by, reason))

    def grant(
        self,
        document: str,
        token: str | None = None,
        *,
        by: str,
        reason: str,
        document_type: str | None = None,
        tenant: str = "",
    ) -> str:
        """Allow one event that carries `token` to leave a terminal state by the table's `remedies`, to pass over states that
        were not seen, or to go on without the numbers missing before it; the token, made up if none is given. Raises
        SettingsError for an unknown document, WorkflowError beyond eight unused tokens."""
        return self.store.run(self.grant_work(document, document_type, tenant, token, by, reason))

    def replay(self, *, reason: str, limit: int = 1_000, **wanted: Unpack[EventQuery]) -> int:
        """Process again what fits (see `EventQuery`); how many events. Originals stay as they are."""
        return effects.run(self._replay(reason, limit, wanted))

    def unpark(self, source: str) -> int:
        """Process parked events whose schema versions the source knows by now; how many."""
        return effects.run(self._unpark(source))

    def events(self, *, limit: int = 100, **wanted: Unpack[EventQuery]) -> list[EventRow]:
        """Events with their newest run, newest first. It looks as far back as it must: `since=` bounds that."""
        return self.store.run(operations.list_work(wanted, limit))

    def page(self, *, limit: int = 100, **wanted: Unpack[EventQuery]) -> operations.EventPage:
        """As `events`, but of the newest 20,000 events at most, and how far that was: what few events fit is found in pages."""
        return self.store.run(operations.page_work(wanted, limit))

    def show(self, ref: str) -> EventDetails | None:
        """One event: as it stands, how it came, and its last attempts that failed; None: there is none of this name."""
        return self.store.run(operations.show_work(ref))

    def conflicts(self, *, limit: int = 100, before: str | None = None) -> list[operations.ConflictRow]:
        """Other bodies under known ids, newest first; those that came before this one (`conflict` of the last)."""
        return self.store.run(operations.conflicts_work(limit, before))

    def counts(self) -> dict[str, dict[str, int]]:
        """Runs by source and state."""
        return operations.by_source(self.store.run(operations.counts_work()))

    def depth(self) -> Sequence[Depth]:
        """Count the runs that wait, by source, up to 10,000 of each kind. Cheap whatever the backlog."""
        return self.store.run(operations.only_reads(self.depth_work()))

    def metrics(self) -> bytes:
        """Counters of this process and the depth of the inbox, as Prometheus text. Raises SettingsError."""
        return effects.run(self._metrics())

    def explain(
        self, document: str, *, document_type: str | None = None, tenant: str = "", limit: int = 1_000
    ) -> list[str]:
        """A document's history as lines: its last decisions, `limit` of them, what each changed and why, and how the document
        stands."""
        return self.store.run(operations.explain_work(document, document_type, tenant, limit))

    def prune(self, *, bodies_days: float = 30, events_days: float = 90, limit: int | None = 1_000) -> Pruned:
        """Remove bodies, and later dedupe records, of events that are finished: `limit` of each at most, None: all."""
        return effects.run(self._prune(bodies_days, events_days, limit))
