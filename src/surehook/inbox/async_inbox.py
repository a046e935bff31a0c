"""`AsyncInbox`, for callers that must not block; `Inbox` has the same names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar, Unpack

from sqlalchemy import URL, Connection, Engine
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession
from sqlalchemy.orm import Session

from surehook.core import effects
from surehook.core.errors import SettingsError
from surehook.core.sources.provider import Reply
from surehook.inbox import operations
from surehook.inbox.asgi import BODY_S, AsgiApp
from surehook.inbox.backoff import Backoff
from surehook.inbox.base import BaseInbox
from surehook.inbox.bounded import Bounded
from surehook.inbox.definitions import Definitions
from surehook.inbox.event import Event
from surehook.inbox.group_commit import DRAIN_S, AsyncGroupCommit, AsyncRun
from surehook.inbox.handlers import HandlerOptions, Returned
from surehook.inbox.no_workers import NoWorkersWatch
from surehook.inbox.operations import EventDetails, EventQuery, EventRow
from surehook.inbox.queue.mover import Mover
from surehook.inbox.queue.option import Queue
from surehook.inbox.queue.port import Broker, Length
from surehook.inbox.receipt_sender import AWAITING
from surehook.inbox.receive import IncomingRequest
from surehook.inbox.retention import Keep
from surehook.inbox.rules import Rules, checked_workers
from surehook.inbox.signals import TaskEvent
from surehook.inbox.sources.source import Source
from surehook.inbox.sql import engines, idle_timeout
from surehook.inbox.sql.stores import AsyncSqlStore
from surehook.inbox.sql.transaction_deadlines import STORE_S
from surehook.inbox.worker_tasks import WorkerTasks
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy
from surehook.ports.inbox import AsyncStore
from surehook.ports.inbox_depth import Depth
from surehook.ports.inbox_pruning import Pruned

# An ordinary function gets a `tx` that blocks.
LoopHandler = TypeVar(
    "LoopHandler",
    bound=Callable[[Event, AsyncConnection], Awaitable[object]]
    | Callable[[Event, AsyncSession], Awaitable[object]]
    | Callable[[Event, Connection], Returned]
    | Callable[[Event, Session], Returned],
)


class AsyncInbox(BaseInbox[AsyncStore]):
    """An `Inbox` for event loops: an `AsyncEngine`, a URL or a store of one's own; handlers may be coroutines."""

    connect = staticmethod(AWAITING)

    def __init__(
        self,
        engine: AsyncEngine | AsyncStore | URL | str,
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
            sources, may_wait=True, backoff=backoff, rules=rules, keep=keep, queue=queue, clock=clock,
            entropy=entropy,
        )  # fmt: skip
        if isinstance(engine, Engine):
            raise SettingsError(
                "engine",
                "an Engine that blocks needs an Inbox",
                hint="Inbox(engine), or AsyncInbox(url)",
            )
        made = engines.async_engine(engine) if isinstance(engine, URL | str) else engine
        if not isinstance(made, AsyncEngine) and not hasattr(made, "run"):
            raise engines.no_engine(made)
        self.store: AsyncStore = (
            AsyncSqlStore(made, sessions=sessions) if isinstance(made, AsyncEngine) else made
        )
        self._working: AsyncRun = self.store
        self._storing: AsyncRun = self.store
        if isinstance(self.store, AsyncSqlStore):
            if made is engine:
                idle_timeout.restore(self.store.engine.sync_engine)
            self.store.idle_ms = round(self.rules.within_s * 1000)
            self._working = Bounded(self.store, self.rules.lease_ms / 1000)
            self._storing = Bounded(self.store, STORE_S)
        self._group_commit = AsyncGroupCommit(self._storing, self.clock.boot)
        self.woken = self._signal()
        self.pool = WorkerTasks(
            self.worker,
            self.store.cut if isinstance(self.store, AsyncSqlStore) else lambda task: False,
            self.store.has_ended if isinstance(self.store, AsyncSqlStore) else lambda task: False,
            self.calls, stop_s=self.rules.stop_s,
        )  # fmt: skip
        self.no_workers = NoWorkersWatch(self.clock.now, self.clock.boot, lambda: bool(self.pool.members))

    def _signal(self) -> TaskEvent:
        return TaskEvent()

    # -- receiving -----------------------------------------------------------------------------------------------

    def asgi(self, *, body_s: float = BODY_S) -> AsgiApp:
        """An ASGI application: POST /SOURCE. A body has `body_s` seconds to come."""
        return AsgiApp(self.receiver, self.receive, body_s=body_s)

    async def receive(self, call: IncomingRequest) -> Reply:
        """Judge, store and answer one request whose head was let through. Never raises."""
        judged = self.receiver.judge(call, now=self.clock.now())
        del call  # while this waits for a commit, hundreds of others do: see `Taken`
        if isinstance(judged, Reply):
            return judged
        try:
            if self.queue and await self.queue.confirmed_async(judged):
                return judged.success
            ends = await self._group_commit.put(judged.request)
        except Exception as error:
            return self.unstored(judged, error)
        self.stored(judged.request, ends)
        self.no_workers.arrived(self._look_for_workers)
        return judged.reply(ends)

    async def _look_for_workers(self) -> bool:
        return await effects.run_async(self._look_for_work())

    # -- handlers ------------------------------------------------------------------------------------------------

    def on(  # type: ignore[override]  # fewer functions are taken than by `Definitions`, which speaks for both inboxes
        self, source: str, pattern: str = "*", **options: Unpack[HandlerOptions]
    ) -> Callable[[LoopHandler], LoopHandler]:
        return super().on(source, pattern, **options)

    def on_undo(  # type: ignore[override]  # likewise
        self, source: str, pattern: str = "*", *, name: str | None = None, timeout_s: float | None = None
    ) -> Callable[[LoopHandler], LoopHandler]:
        return super().on_undo(source, pattern, name=name, timeout_s=timeout_s)

    on.__doc__, on_undo.__doc__ = Definitions.on.__doc__, Definitions.on_undo.__doc__

    # -- working -------------------------------------------------------------------------------------------------

    def start(self, workers: int = 1) -> None:
        """Process, and tell senders that asked, in tasks of this loop. Raises SettingsError for less than one worker, and
        outside of a loop."""
        checked_workers(workers)
        _check_loop()
        if isinstance(self.store, AsyncSqlStore):
            engines.suffices(self.store.engine.sync_engine.pool, workers)
        self.pool.start(workers, self._jobs())

    def _mover(self) -> Mover:
        return self.queue.mover(self._group_commit.put_all, self.stored)

    async def stop(self) -> None:
        """End the workers after the handler that each is in. What hangs after `Rules.stop_s` seconds is cancelled, logged, and
        done again."""
        await effects.run_async(self.pool.stopping())
        self._say_left_out()

    async def work(self) -> int:
        """Process here what is due, until nothing is; how many turns it took. For tests and scripts."""
        return await effects.run_async(self.worker().until_idle())

    async def move(self) -> int:
        """Take here what waits in the queue into the table, until nothing does; how many requests. For tests and scripts; `start`
        does so all the time. Raises QueueAway, StoreError."""
        return await self._mover().until_empty() if self.queue else 0

    async def queued(self) -> Length | None:
        """Count the messages in the queue; None: there is no queue. Raises QueueAway."""
        return await self.queue.length()

    async def send_receipts(self) -> int:
        """Tell senders here what is due, until nothing is; how many receipts were tried. For tests and scripts."""
        return await effects.run_async(self._receipt_sender().until_done())

    @asynccontextmanager
    async def running(self, workers: int = 1) -> AsyncIterator[None]:
        """Workers within a lifespan of your own: `async with inbox.running(workers=4): yield`."""
        self.start(workers)
        try:
            yield
        finally:
            await self.stop()
            await self._group_commit.drained(DRAIN_S)
            await self.queue.close_async()

    # -- operations ----------------------------------------------------------------------------------------------

    async def create_tables(self) -> None:
        """Make the tables that are missing."""
        await self.store.create()

    async def close(self) -> None:
        """Stop the workers and let the connections go."""
        await self.stop()
        await self.no_workers.closed()
        await self.queue.close_async()
        await self.store.close()

    async def finalize(self, ref: str, note: str = "") -> bool:
        """Say that a processed event stands; whether it was waiting for that. From any process."""
        return await effects.run_async(self._decide(ref, "finalized", None, note))

    async def reject(self, ref: str, code: str, note: str = "") -> bool:
        """Say that a processed event does not stand; whether it was waiting for that. It can be replayed. If it moved a
        document, that goes back, or where `rejected` of its table says."""
        return await effects.run_async(self._decide(ref, "rejected", code, note))

    async def release(
        self, document: str, *, by: str, reason: str, document_type: str | None = None, tenant: str = ""
    ) -> bool:
        """Let a document go on behind a conflict, or without what is missing up to the first event that waits; whether
        anything is held for it. From any process; the next worker does it. `by` and `reason` are in the journal."""
        return await effects.run_async(self._release(document, document_type, tenant, by, reason))

    async def grant(
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
        return await self.store.run(self.grant_work(document, document_type, tenant, token, by, reason))

    async def replay(self, *, reason: str, limit: int = 1_000, **wanted: Unpack[EventQuery]) -> int:
        """Process again what fits (see `EventQuery`); how many events. Originals stay as they are."""
        return await effects.run_async(self._replay(reason, limit, wanted))

    async def unpark(self, source: str) -> int:
        """Process parked events whose schema versions the source knows by now; how many."""
        return await effects.run_async(self._unpark(source))

    async def events(self, *, limit: int = 100, **wanted: Unpack[EventQuery]) -> list[EventRow]:
        """Events with their newest run, newest first. It looks as far back as it must: `since=` bounds that."""
        return await self.store.run(operations.list_work(wanted, limit))

    async def page(self, *, limit: int = 100, **wanted: Unpack[EventQuery]) -> operations.EventPage:
        """As `events`, but of the newest 20,000 events at most, and how far that was: what few events fit is found in pages."""
        return await self.store.run(operations.page_work(wanted, limit))

    async def show(self, ref: str) -> EventDetails | None:
        """One event: as it stands, how it came, and its last attempts that failed; None: there is none of this name."""
        return await self.store.run(operations.show_work(ref))

    async def conflicts(self, *, limit: int = 100, before: str | None = None) -> list[operations.ConflictRow]:
        """Other bodies under known ids, newest first; those that came before this one (`conflict` of the last)."""
        return await self.store.run(operations.conflicts_work(limit, before))

    async def counts(self) -> dict[str, dict[str, int]]:
        """Runs by source and state."""
        return operations.by_source(await self.store.run(operations.counts_work()))

    async def depth(self) -> Sequence[Depth]:
        """Count the runs that wait, by source, up to 10,000 of each kind. Cheap whatever the backlog."""
        return await self.store.run(operations.only_reads(self.depth_work()))

    async def metrics(self) -> bytes:
        """Counters of this process and the depth of the inbox, as Prometheus text. Raises SettingsError."""
        return await effects.run_async(self._metrics())

    async def explain(
        self, document: str, *, document_type: str | None = None, tenant: str = "", limit: int = 1_000
    ) -> list[str]:
        """A document's history as lines: its last decisions, `limit` of them, what each changed and why, and how the document
        stands."""
        return await self.store.run(operations.explain_work(document, document_type, tenant, limit))

    async def prune(
        self, *, bodies_days: float = 30, events_days: float = 90, limit: int | None = 1_000
    ) -> Pruned:
        """Remove bodies, and later dedupe records, of events that are finished: `limit` of each at most, None: all."""
        return await effects.run_async(self._prune(bodies_days, events_days, limit))


def _check_loop() -> None:
    """Raises SettingsError where no event loop runs."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise SettingsError(
            "start",
            "no event loop runs here, and workers of an AsyncInbox are tasks of one",
            hint="call it in a coroutine; an application does so itself: FastAPI(lifespan=inbox.lifespan)",
        ) from None
