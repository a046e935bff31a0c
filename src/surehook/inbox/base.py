"""One text for both inboxes: `Inbox` and `AsyncInbox` run these scripts over stores that block and that await."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from surehook.core.effects import Script
from surehook.core.errors import SettingsError
from surehook.inbox import operations
from surehook.inbox.asgi import BODY_S, App, AsgiApp, Before
from surehook.inbox.definitions import Definitions
from surehook.inbox.group_commit import AsyncRun, BlockingRun
from surehook.inbox.no_workers import NoWorkersWatch
from surehook.inbox.pool import Job
from surehook.inbox.queue.port import QueueAway
from surehook.inbox.receipt_sender import Connect, ReceiptSender
from surehook.inbox.runs_in_hand import Takeover
from surehook.inbox.signals import Signal
from surehook.inbox.trouble import LOOKING
from surehook.inbox.worker import Worker
from surehook.ports.inbox import AsyncStore, Store, Stored, StoredRequest, StoreError
from surehook.ports.inbox_pruning import FROM_THE_START, Pruned, PrunedPart

S = TypeVar("S", bound=Store | AsyncStore)


class BaseInbox(Definitions, ABC, Generic[S]):
    """An inbox on a store of either kind; `connect` and `_signal` are of the same kind as the store."""

    store: S
    # The store, with a deadline for each transaction: a lease for those of workers, STORE_S for what senders wait for.
    _working: BlockingRun | AsyncRun
    _storing: BlockingRun | AsyncRun
    woken: Signal
    no_workers: NoWorkersWatch
    connect: Connect

    @abstractmethod
    def _signal(self) -> Signal:
        """Make a signal of this kind."""

    @abstractmethod
    def _mover(self) -> Job:
        """Make a mover from the queue into the table."""

    @abstractmethod
    def queued(self) -> Any:
        """Count the messages in the queue; None: there is no queue. Raises QueueAway."""

    @abstractmethod
    def asgi(self, *, body_s: float = BODY_S) -> AsgiApp:
        """An ASGI application: POST /SOURCE. A body has `body_s` seconds to come."""

    # For a type checker an inbox is not callable, so that it finds the mistake before anything runs.
    if not TYPE_CHECKING:

        def __call__(self, *_: object, **__: object) -> None:
            """Refuse to be called as an application, as a framework does with what was mounted. Raises SettingsError."""
            what = type(self).__name__
            raise SettingsError(
                "inbox",
                f"an {what} is no application of its own",
                hint="app.mount('/hooks', inbox.asgi()), in Flask and its like Inbox(…).wsgi()",
            )

    @abstractmethod
    def running(self, workers: int = 1) -> AbstractAsyncContextManager[None]:
        """Workers within a lifespan of your own: `async with inbox.running(workers=4): yield`."""

    def before(self, app: App, path: str = "/hooks", *, body_s: float = BODY_S) -> Before:
        """`asgi` at `path` in front of an ASGI application, whose middleware then sees nothing of it. Raises SettingsError."""
        return Before(self.asgi(body_s=body_s), app, path)

    def lifespan(self, app: object = None) -> AbstractAsyncContextManager[None]:
        """One worker for as long as an ASGI application lives: `FastAPI(lifespan=inbox.lifespan)`."""
        return self.running()

    def stored(self, request: StoredRequest, ends: Sequence[Stored]) -> None:
        """Count a committed request, and wake the workers."""
        self.arrived(request, ends)
        self.woken.set()

    def worker(self, takeover: Takeover | None = None) -> Worker:
        """Make a worker, to be run."""
        self.unheard.check()
        return Worker(self._working, self.transactions, self.woken, self._signal(), takeover)

    def _receipt_sender(self) -> ReceiptSender:
        idle_s = self.rules.idle_s
        return ReceiptSender(
            self._working, self.receipt_batches, self.connect, self._signal(), idle_s, self.trouble
        )

    def _jobs(self) -> list[Job]:
        """Make what runs beside the workers."""
        jobs: list[Job] = []
        if self.receipt_batches.are_wanted:
            jobs.append(self._receipt_sender())
        if self.queue:
            jobs.append(self._mover())
        return jobs

    def _say_left_out(self) -> None:
        """Log how much was left out of the log, as nothing comes any more that would tell."""
        for one in self.limited:
            one.say_left_out(at_end=True)

    # -- scripts -------------------------------------------------------------------------------------------------

    def _look_for_work(self) -> Script[bool]:
        """Tell whether anything waits, as far as is known."""
        try:
            waits: bool = yield self._storing.run(operations.only_reads(self.no_workers.look))
        except Exception as error:
            self.trouble.met(error, LOOKING)
            return True
        self.trouble.over(LOOKING)
        return waits

    def _decide(
        self, ref: str, state: Literal["finalized", "rejected"], code: str | None, note: str
    ) -> Script[bool]:
        call = self.calls.mine()
        own = None if call is None else call.run.event
        work = operations.decide_work(
            ref, state, code, note, self.clock.now(), self.pending_receipts, own=own
        )
        decided = self.decided((yield self.store.run(work)))
        if state == "rejected":
            self.woken.set()
        return decided

    def _release(
        self, document: str, document_type: str | None, tenant: str, by: str, reason: str
    ) -> Script[bool]:
        found: bool = yield self.store.run(self.release_work(document, document_type, tenant, by, reason))
        self.woken.set()
        return found

    def _replay(self, reason: str, limit: int, wanted: Mapping[str, object]) -> Script[int]:
        work = operations.replay_work(
            wanted, reason=reason, limit=limit, now=self.clock.now(), identify=self.identify
        )
        begun: int = yield self.store.run(work)
        self.woken.set()
        return begun

    def _unpark(self, source: str) -> Script[int]:
        known, now, found = self._source(source), self.clock.now(), 0
        after: bytes | None = b""
        while after is not None:
            part: tuple[int, bytes | None] = yield self.store.run(operations.unpark_work(known, now, after))
            found, after = found + part[0], part[1]
        self.woken.set()
        return found

    def _prune(self, bodies_days: float, events_days: float, limit: int | None) -> Script[Pruned]:
        """Remove at most `limit` of each kind, None: all, in transactions between which others have their turn."""
        most = sys.maxsize if limit is None else operations.checked_rows(limit)
        now, place, requests, events = self.clock.now(), FROM_THE_START, 0, 0
        while not place.is_end and (left := most - max(requests, events)) > 0:
            rows = min(left, operations.PORTION)
            part: PrunedPart = yield self.store.run(
                operations.prune_work(bodies_days, events_days, rows, now, place)
            )
            place = part.place
            requests, events = requests + part.removed.requests, events + part.removed.events
        return Pruned(requests, events)

    def _metrics(self) -> Script[bytes]:
        collector = self.collector()
        try:
            yield self.store.run(operations.only_reads(self.depth_work()))
        except StoreError as error:
            self.unseen(error)
        with suppress(QueueAway):
            yield self.queued()
        return collector.render()
