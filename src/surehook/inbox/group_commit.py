"""Group commit: requests that wait at the same moment share one transaction.

Nobody waits for a timer: a lone request is written at once, and what arrives during its commit makes the next batch. So a
batch grows with the load and with how long a commit takes, which is when it is needed. In an event loop, requests that can be
read already are read first: they would take the loop's time during the commit as well, and each commit has its price.

If a batch fails, its requests are written one by one, so that one that cannot be stored spoils nothing for its neighbours;
not so when the database is away, which is the same for all. Where it was silent, or kept a batch waiting, for the whole of a
transaction's time, those that wait by then are told so as well: each further batch would take as long, and their senders
give up before that.
"""

from __future__ import annotations

import asyncio
import math
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from surehook.core import effects
from surehook.core.effects import Script
from surehook.core.errors import Overloaded
from surehook.host.clock import SystemClock
from surehook.host.forking import renew_in_children
from surehook.ports.inbox import (
    Clash,
    Contended,
    Stored,
    StoredRequest,
    StoreError,
    StoreUnavailable,
    Transaction,
)

T = TypeVar("T")

BATCH_EVENTS = 512  # in one transaction: beyond that, a larger one saves nothing and answers later
BATCH_BYTES = 8 * 1024 * 1024  # bodies of one transaction
TURNS = 16  # of the loop, at most, in which a batch waits for what is ready to be read
LATE_S = 5.0  # of trying, after which a batch that lost a race is not written again: half of what a transaction has
LINE_REQUESTS = 10_000  # waiting: two seconds' worth; more would be answered after their senders gave up
LINE_BYTES = 64 * 1024 * 1024  # bodies waiting, in memory
DRAIN_S = 2.0  # at the end of a process, for what waits
CLASHES = 5  # times in a row that another process may be faster with the same events, or hold the same locks

BOOT = SystemClock().boot
StoredEvents = list[Stored]
StoreResult = StoredEvents | Exception


class BlockingRun(Protocol):
    """The one method of a `Store` that is needed here."""

    def run(self, work: Callable[[Transaction], T]) -> T: ...


class AsyncRun(Protocol):
    """The same of an `AsyncStore`."""

    def run(self, work: Callable[[Transaction], T]) -> Awaitable[T]: ...


class Ticket:
    """One waiting request, and its outcome."""

    __slots__ = ("done", "ends", "error", "request", "waiter")

    def __init__(self, request: StoredRequest) -> None:
        self.request = request
        self.done = False
        self.ends: StoredEvents = []
        self.error: Exception | None = None
        self.waiter: asyncio.Future[None] | None = None

    def finish(self, ends: StoredEvents | None, error: Exception | None = None) -> None:
        self.ends, self.error, self.done = ends or [], error, True
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def result(self) -> StoredEvents:
        if self.error is not None:
            raise self.error
        return self.ends


class _PendingRequests:
    """A bounded queue of requests."""

    def __init__(self) -> None:
        self._group_commit: deque[Ticket] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._group_commit)

    def add(self, ticket: Ticket) -> None:
        if len(self._group_commit) >= LINE_REQUESTS or self._bytes >= LINE_BYTES:
            raise Overloaded("too many requests wait to be stored")
        self._group_commit.append(ticket)
        self._bytes += len(ticket.request.body)

    def fail(self, error: Exception) -> None:
        """Finish all with this error."""
        while self._group_commit:
            self._group_commit.popleft().finish(None, error)
        self._bytes = 0

    def take(self) -> list[Ticket]:
        """Take the next batch: the oldest, at least one."""
        taken: list[Ticket] = []
        events = size = 0
        while self._group_commit:
            request = self._group_commit[0].request
            events += len(request.events)
            size += len(request.body)
            if taken and (events > BATCH_EVENTS or size > BATCH_BYTES):
                break
            taken.append(self._group_commit.popleft())
            self._bytes -= len(request.body)
        return taken


class GroupCommit:
    """Group commit for callers that block. A caller that finds nobody writing writes for all who wait. `boot` counts seconds."""

    def __init__(self, store: BlockingRun, boot: Callable[[], float] = BOOT) -> None:
        self._store, self._boot = store, boot
        self.forked()
        renew_in_children(self)

    def forked(self) -> None:
        """Those who write or wait in the parent do not in a child."""
        self._waiting = _PendingRequests()
        self._adding = threading.Lock()
        self._writing = threading.Lock()

    def put(self, request: StoredRequest) -> StoredEvents:
        """Store one request with others; returns after the commit. Raises Overloaded, StoreError."""
        ticket = Ticket(request)
        with self._adding:
            self._waiting.add(ticket)
        with self._writing:
            while not ticket.done:
                with self._adding:
                    batch = self._waiting.take()
                if (late := self._write(batch)) is not None:
                    with self._adding:
                        self._waiting.fail(late)
        return ticket.result()

    def put_all(self, requests: Sequence[StoredRequest]) -> list[StoreResult]:
        """Store these, in as many batches as it takes, between which others have their turn; the outcome of each."""
        tickets = [Ticket(request) for request in requests]
        waiting = _PendingRequests()
        for ticket in tickets:
            waiting.add(ticket)
        while waiting:
            with self._writing:
                if (late := self._write(waiting.take())) is not None:
                    waiting.fail(late)
        return [ticket.error or ticket.ends for ticket in tickets]

    def _write(self, batch: list[Ticket]) -> StoreUnavailable | None:
        return effects.run(_write(self._store, batch, self._boot))


class LoopBatches(ABC):
    """Batches for callers that must not block: those of one event loop that wait at the same moment."""

    def __init__(self) -> None:
        self._waiting = _PendingRequests()
        self._writer: asyncio.Task[None] | None = None

    @abstractmethod
    async def _write(self, batch: list[Ticket]) -> None:
        """Finish every ticket."""

    async def put(self, request: StoredRequest) -> StoredEvents:
        """Have one request written with others; returns when it is. Raises Overloaded, and what its ticket was finished with."""
        ticket = Ticket(request)
        loop = asyncio.get_running_loop()
        ticket.waiter = loop.create_future()
        self._waiting.add(ticket)
        if self._writer is None or self._writer.done():
            self._writer = loop.create_task(self._write_all())
        # A caller that is cancelled leaves its request in the batch: it may be stored, unanswered.
        await ticket.waiter
        return ticket.result()

    async def drained(self, within_s: float | None = None) -> None:
        """Wait until nothing waits, and for so many seconds at most; what waits then is told that it was not stored."""
        until = math.inf if within_s is None else asyncio.get_running_loop().time() + within_s
        while self._writer is not None and not self._writer.done():
            left = until - asyncio.get_running_loop().time()
            done, _ = await asyncio.wait({self._writer}, timeout=None if left == math.inf else max(left, 0))
            if not done:
                self._waiting.fail(StoreUnavailable("stopped while waiting to be stored"))
                self._writer.cancel()
                return

    async def _write_all(self) -> None:
        while self._waiting:
            await self._gathered()
            await self._write(self._waiting.take())

    async def _gathered(self) -> None:
        """Return when two turns of the loop, one that reads and one that judges, have brought nothing more, or after TURNS."""
        quiet = 0
        for _ in range(TURNS):
            before = len(self._waiting)
            await asyncio.sleep(0)
            quiet = quiet + 1 if len(self._waiting) == before else 0
            if quiet == 2:
                return


class AsyncGroupCommit(LoopBatches):
    """`GroupCommit` for an event loop. The store is asynchronous, or sends work to a thread."""

    def __init__(self, store: AsyncRun, boot: Callable[[], float] = BOOT) -> None:
        super().__init__()
        self._store, self._boot = store, boot

    async def put_all(self, requests: Sequence[StoredRequest]) -> list[StoreResult]:
        """Store these with what else waits; the outcome of each."""

        async def outcome(request: StoredRequest) -> StoreResult:
            try:
                return await self.put(request)
            except Exception as error:
                return error

        return await asyncio.gather(*map(outcome, requests))

    async def _write(self, batch: list[Ticket]) -> None:
        if (late := await effects.run_async(_write(self._store, batch, self._boot))) is not None:
            self._waiting.fail(late)


def _write(
    store: BlockingRun | AsyncRun, batch: list[Ticket], boot: Callable[[], float]
) -> Script[StoreUnavailable | None]:
    """Finish every ticket of a batch, whatever happens; an error that is to be everybody's, since it took long to come."""
    plan = _BatchPlan(batch, boot)
    for part in plan:
        try:
            ends: list[StoredEvents] = yield store.run(persist_work(part))
            plan.stored(part, ends)
        except Exception as error:
            plan.failed(part, error)
        except BaseException as error:
            plan.stopped(error)
            raise
    return plan.late


class Part:
    """Tickets that are written together, and how often they clashed."""

    __slots__ = ("clashes", "tickets")

    def __init__(self, tickets: list[Ticket], clashes: int = 0) -> None:
        self.tickets = tickets
        self.clashes = clashes


class _BatchPlan:
    """The parts of a batch still to be written: all at once; again with care after a clash; one by one after a failure."""

    def __init__(self, batch: list[Ticket], boot: Callable[[], float]) -> None:
        self._batch = batch
        self._todo: deque[Part] = deque([Part(batch)])
        self._boot, self._late_at = boot, boot() + LATE_S
        self.late: StoreUnavailable | None = None

    def __iter__(self) -> _BatchPlan:
        return self

    def __next__(self) -> Part:
        if not self._todo:
            raise StopIteration
        return self._todo.popleft()

    def stored(self, part: Part, ends: Sequence[StoredEvents]) -> None:
        for ticket, end in zip(part.tickets, ends, strict=True):
            ticket.finish(end)

    def failed(self, part: Part, error: Exception) -> None:
        if isinstance(error, StoreUnavailable) and self._boot() >= self._late_at:
            self.late = error
            for other in (part, *self._todo):
                for ticket in other.tickets:
                    ticket.finish(None, error)
            self._todo.clear()
        elif isinstance(error, Clash | Contended) and part.clashes < CLASHES:
            self._todo.appendleft(Part(part.tickets, part.clashes + 1))
        # A clash that stays one may be a single request's.
        elif (
            len(part.tickets) > 1
            and isinstance(error, StoreError)
            and not isinstance(error, StoreUnavailable)
        ):
            self._todo.extend(Part([ticket]) for ticket in part.tickets)
        else:
            for ticket in part.tickets:
                ticket.finish(None, error)

    def stopped(self, error: BaseException) -> None:
        """Fail all that wait, since the writer itself was stopped."""
        for ticket in self._batch:
            if not ticket.done:
                ticket.finish(None, StoreUnavailable(f"stopped while storing ({error.__class__.__name__})"))


def persist_work(part: Part) -> Callable[[Transaction], list[StoredEvents]]:
    requests = [ticket.request for ticket in part.tickets]
    careful = part.clashes > 0
    return lambda transaction: transaction.persist(requests, careful=careful)
