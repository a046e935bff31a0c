"""`AsyncInbox`, for callers that must not block; `Inbox` has the same names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Unpack

from sqlalchemy import URL, Engine
from sqlalchemy.ext.asyncio import AsyncEngine

from surehook.core import effects
from surehook.core.errors import SettingsError
from surehook.core.sources.provider import Reply
from surehook.inbox import operations
from surehook.inbox.asgi import BODY_S, App, AsgiApp, Before
from surehook.inbox.backoff import Backoff
from surehook.inbox.definitions import Definitions
from surehook.inbox.group_commit import AsyncLine
from surehook.inbox.keeping import Keep
from surehook.inbox.operations import Listed, Shown, Wanted
from surehook.inbox.pool import Job
from surehook.inbox.queue.mover import Mover
from surehook.inbox.queue.option import Queue
from surehook.inbox.queue.port import Broker, Length, QueueAway
from surehook.inbox.receipt_sender import AWAITING, Teller
from surehook.inbox.receive import Call
from surehook.inbox.rules import Rules
from surehook.inbox.signals import TaskEvent
from surehook.inbox.sources.source import Source
from surehook.inbox.sql import engines, idling
from surehook.inbox.sql.stores import AsyncSqlStore
from surehook.inbox.trouble import LOOKING
from surehook.inbox.unworked import Unworked
from surehook.inbox.worker import Left, Worker
from surehook.inbox.worker_tasks import WorkerTasks
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy
from surehook.ports.inbox import AsyncStore, Depth, Pruned, Request, Stored, StoreError


class AsyncInbox(Definitions):
    """The twin of `Inbox` for event loops: an `AsyncEngine`, a URL or a store of one's own; handlers may be coroutines."""

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
        if isinstance(self.store, AsyncSqlStore):
            if made is engine:
                idling.restore(self.store.engine.sync_engine)
            self.store.idle_ms = round(self.steps.rules.within_s * 1000)
        self._line = AsyncLine(self.store)
        self.woken = TaskEvent()
        self.pool = WorkerTasks(
            self.worker,
            self.store.cut if isinstance(self.store, AsyncSqlStore) else lambda task: False,
            self.calls, stop_s=self.steps.rules.stop_s,
        )  # fmt: skip
        self.unworked = Unworked(self.clock.now, self.clock.boot, lambda: bool(self.pool.members))

    # -- receiving -----------------------------------------------------------------------------------------------

    def asgi(self, *, body_s: float = BODY_S) -> AsgiApp:
        """An ASGI application: POST /SOURCE. A body has `body_s` seconds to come."""
        return AsgiApp(self.receiver, self.receive, body_s=body_s)

    def before(self, app: App, path: str = "/hooks", *, body_s: float = BODY_S) -> Before:
        """`asgi` at `path` in front of an ASGI application, whose middleware then sees nothing of it. Raises SettingsError."""
        return Before(self.asgi(body_s=body_s), app, path)

    async def receive(self, call: Call) -> Reply:
        """Judge, store and answer one request whose head was let through. Never raises."""
        judged = self.receiver.judge(call, now=self.clock.now())
        del call  # while this waits for a commit, hundreds of others do: see `Taken`
        if isinstance(judged, Reply):
            return judged
        try:
            if self.ahead and await self.ahead.confirmed_async(judged):
                return judged.success
            ends = await self._line.put(judged.request)
        except Exception as error:
            return self.unstored(judged, error)
        self.stored(judged.request, ends)
        self.unworked.arrived(self._look_for_workers)
        return judged.reply(ends)

    async def _look_for_workers(self) -> bool:
        """Tell whether anything waits, as far as is known."""
        try:
            waits = await self.store.run(self.unworked.look)
        except Exception as error:
            self.trouble.met(error, LOOKING)
            return True
        self.trouble.over(LOOKING)
        return waits

    def stored(self, request: Request, ends: Sequence[Stored]) -> None:
        """A request is committed: count it, and wake who works."""
        self.arrived(request, ends)
        self.woken.set()

    # -- working -------------------------------------------------------------------------------------------------

    def start(self, workers: int = 1) -> None:
        """Process, and tell senders that asked, in tasks of this loop."""
        if isinstance(self.store, AsyncSqlStore):
            engines.suffices(self.store.engine.sync_engine.pool, workers)
        also: list[Job] = []
        if self.letters.are_wanted:
            also.append(self._receipt_sender())
        if self.ahead:
            also.append(self._mover())
        self.pool.start(workers, also)

    def worker(self, left: Left | None = None) -> Worker:
        """A worker that nobody runs yet."""
        return Worker(self.store, self.steps, self.woken, TaskEvent(), left)

    def _receipt_sender(self) -> Teller:
        idle_s, stopping = self.steps.rules.idle_s, TaskEvent()
        return Teller(self.store, self.letters, AWAITING, stopping, idle_s, self.trouble)

    def _mover(self) -> Mover:
        return self.ahead.mover(self._line.put_all, self.stored)

    async def stop(self) -> None:
        """End the workers after the handler that each is in, and after `Rules.stop_s` seconds at the latest: what hangs then is
        cancelled, told, and done anew."""
        await effects.run_async(self.pool.stopping())

    async def work(self) -> int:
        """Process here what is due, until nothing is; how many turns it took. For tests and scripts."""
        return await effects.run_async(self.worker().until_idle())

    async def move(self) -> int:
        """Take here what waits in the queue into the table, until nothing does; how many requests. For tests and scripts; `start`
        does so all the time. Raises QueueAway, StoreError."""
        return await self._mover().until_empty() if self.ahead else 0

    async def queued(self) -> Length | None:
        """Count the messages in the queue; None: there is no queue. Raises QueueAway."""
        return await self.ahead.length()

    async def send_receipts(self) -> int:
        """Tell senders here what is due, until nothing is; how many receipts were tried. For tests and scripts."""
        return await effects.run_async(self._receipt_sender().until_done())

    def lifespan(self, app: Any = None) -> AbstractAsyncContextManager[None]:
        """One worker for as long as an ASGI application lives: `FastAPI(lifespan=inbox.lifespan)`."""
        return self.running()

    @asynccontextmanager
    async def running(self, workers: int = 1) -> AsyncIterator[None]:
        """Workers within a lifespan of your own: `async with inbox.running(workers=4): yield`."""
        self.start(workers)
        try:
            yield
        finally:
            await self.stop()
            await self._line.drained()
            await self.ahead.close_async()

    # -- the desk ------------------------------------------------------------------------------------------------

    async def create_tables(self) -> None:
        """Make the tables that are missing."""
        await self.store.create()

    async def close(self) -> None:
        """Stop the workers and let the connections go."""
        await self.stop()
        await self.unworked.closed()
        await self.ahead.close_async()
        await self.store.close()

    async def finalize(self, ref: str, note: str = "") -> bool:
        """Say that a processed event stands; whether it was waiting for that. From any process."""
        return self.decided(
            await self.store.run(
                operations.deciding(ref, "finalized", None, note, self.clock.now(), self.owing)
            )
        )

    async def reject(self, ref: str, code: str, note: str = "") -> bool:
        """Say that a processed event does not stand; whether it was waiting for that. It can be replayed. If it moved a
        document, that goes back, or where `rejected` of its table says."""
        rejected = self.decided(
            await self.store.run(
                operations.deciding(ref, "rejected", code, note, self.clock.now(), self.owing)
            )
        )
        self.woken.set()
        return rejected

    async def release(
        self, document: str, *, by: str, reason: str, document_type: str | None = None, tenant: str = ""
    ) -> bool:
        """Let a document go on behind a conflict, or without what is missing up to the first event that waits; whether
        anything is held for it. From any process; the next worker does it. `by` and `reason` are in the journal."""
        found = await self.store.run(self.releasing(document, document_type, tenant, by, reason))
        self.woken.set()
        return found

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
        return await self.store.run(self.granting(document, document_type, tenant, token, by, reason))

    async def replay(self, *, reason: str, limit: int = 1_000, **wanted: Unpack[Wanted]) -> int:
        """Process again what fits (see `Wanted`); how many events. Originals stay as they are."""
        work = operations.replaying(
            wanted, reason=reason, limit=limit, now=self.clock.now(), identify=self.identify
        )
        begun = await self.store.run(work)
        self.woken.set()
        return begun

    async def unpark(self, source: str) -> int:
        """Process parked events whose schema versions the source knows by now; how many."""
        found = await self.store.run(operations.unparking(self._source(source), self.clock.now()))
        self.woken.set()
        return found

    async def events(self, *, limit: int = 100, **wanted: Unpack[Wanted]) -> list[Listed]:
        """Events with their newest run, newest first. It looks as far back as it must: `since=` bounds that."""
        return await self.store.run(operations.listing(wanted, limit))

    async def page(self, *, limit: int = 100, **wanted: Unpack[Wanted]) -> operations.Looked:
        """As `events`, but of the newest 20,000 events at most, and how far that was: what few events fit is found in pages."""
        return await self.store.run(operations.paging(wanted, limit))

    async def show(self, ref: str) -> Shown | None:
        """One event: as it stands, how it came, and its last attempts that failed; None: there is none of this name."""
        return await self.store.run(operations.showing(ref))

    async def conflicts(self, *, limit: int = 100, before: str | None = None) -> list[operations.Conflicting]:
        """Other bodies under known ids, newest first; those that came before this one (`conflict` of the last)."""
        return await self.store.run(operations.conflicting(limit, before))

    async def counts(self) -> dict[str, dict[str, int]]:
        """Runs by source and state."""
        return operations.by_source(await self.store.run(lambda book: book.counts()))

    async def depth(self) -> Sequence[Depth]:
        """Count the runs that wait, by source, up to 10,000 of each kind. Cheap whatever the backlog."""
        return await self.store.run(self.looking())

    async def metrics(self) -> bytes:
        """Counters of this process and the depth of the inbox, as Prometheus text. Raises SettingsError."""
        collector = self.collector()
        try:
            await self.depth()
        except StoreError as error:
            self.unseen(error)
        with suppress(QueueAway):
            await self.queued()
        return collector.render()

    async def explain(
        self, document: str, *, document_type: str | None = None, tenant: str = ""
    ) -> list[str]:
        """A document's history as lines: every decision, what it changed and why, and how the document stands."""
        return await self.store.run(operations.explaining(document, document_type, tenant))

    async def prune(self, *, bodies_days: float = 30, events_days: float = 90, limit: int = 1_000) -> Pruned:
        """Remove bodies, and later dedupe records, of events that are finished."""
        return await self.store.run(operations.pruning(bodies_days, events_days, limit, self.clock.now()))
