"""The part of an inbox that needs no database: its sources, its handlers, its rules, its clock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from surehook.core.errors import SettingsError
from surehook.core.sources.provider import Reply
from surehook.core.workflow.decide import Table
from surehook.host.clock import SystemClock
from surehook.host.entropy import SystemEntropy
from surehook.inbox import document_commands, unawaited
from surehook.inbox.anomalies import Anomalies
from surehook.inbox.backoff import Backoff, checked_backoff
from surehook.inbox.batch_results import BatchResult
from surehook.inbox.busy_documents import BusyDocuments
from surehook.inbox.calls import HandlerCalls, this_task
from surehook.inbox.changed_tables import ChangedTables
from surehook.inbox.failures import Failures, Hook
from surehook.inbox.following import Following
from surehook.inbox.gaps import Gaps
from surehook.inbox.handler_times import HandlerTimes
from surehook.inbox.handlers import F, Handler, Handlers, check_blocking, named
from surehook.inbox.pending_receipts import PendingReceipts
from surehook.inbox.process import Processor
from surehook.inbox.queue.inbox_queue import InboxQueue
from surehook.inbox.queue.option import Queue
from surehook.inbox.queue.port import Broker
from surehook.inbox.random_values import RandomValues
from surehook.inbox.receipt_batches import ReceiptBatches
from surehook.inbox.receive import BelievedRequest, Receiver, no_source
from surehook.inbox.refusals import Sample
from surehook.inbox.rejections import Rejections
from surehook.inbox.result_policy import ResultPolicy
from surehook.inbox.retention import Keep, Pruner, checked_keep
from surehook.inbox.rules import Rules, checked
from surehook.inbox.safe_log import log
from surehook.inbox.sources.source import Source, listed
from surehook.inbox.transitions import Observer, Transitions
from surehook.inbox.trouble import Trouble
from surehook.inbox.trying import not_seen, trying
from surehook.inbox.undoing import Undoing
from surehook.inbox.unhandled_events import UnhandledEvents
from surehook.inbox.unheard import UnheardDefinitions
from surehook.inbox.watch import Watch
from surehook.inbox.worker_transactions import WorkerTransactions
from surehook.inbox.workflow import Workflow
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy
from surehook.ports.inbox import Entry, Stored, StoredRequest, Transaction, pairs
from surehook.ports.inbox_depth import Depth

if TYPE_CHECKING:
    from surehook.inbox.prometheus import Collector


DEPTH_ROWS = 10_000  # of each kind that are counted: more is "far behind", and costs no more to find out
DEPTH_MS = 10_000  # between two looks of the workers, for those who scrape


class Definitions:
    """The part of `Inbox` and `AsyncInbox` that touches no database."""

    def __init__(
        self,
        sources: Iterable[Source],
        *,
        may_wait: bool,
        backoff: Backoff | None,
        rules: Rules | None,
        keep: Keep | None,
        queue: Queue | Broker | str | None,
        clock: Clock | None,
        entropy: Entropy | None,
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        self._random_values = random_values = RandomValues(entropy or SystemEntropy())
        self.identify = random_values.identify
        self.receiver = Receiver(self.identify, self.clock.boot)
        rules = checked(rules)
        self.handlers = Handlers(rules, may_wait=may_wait)
        self.watch = Watch()
        self.transitions = Transitions(self.clock.boot)
        self._collector: Collector | None = None
        self._looked = -DEPTH_MS  # when a worker last looked at depth, Unix milliseconds
        undoing = Undoing(Handlers(rules, may_wait=may_wait))
        self.following = Following(lambda: self.identify(self.clock.now()), undoing)
        self.unheard = UnheardDefinitions(self.handlers, self.following)
        self.backoff = checked_backoff(backoff)
        handler_times = HandlerTimes(self.handlers, self.clock.boot)
        self.calls = HandlerCalls(
            self.clock.boot, handler_times.took, this_task if may_wait else threading.get_ident
        )
        unawaited.watch(self.calls)
        policy = ResultPolicy(
            self.handlers, self.backoff, random_values.fraction, self.clock.now,
            calls=self.calls, within_s=rules.within_s,
        )  # fmt: skip
        self.pending_receipts = PendingReceipts(self.receiver.sources, self.clock.now)
        self.receipt_batches = ReceiptBatches(
            self.receiver.sources, self.pending_receipts, self.clock.now, random_values.bits,
            random_values.fraction, self.clock.boot,
        )  # fmt: skip
        self.unhandled_events = UnhandledEvents(
            self.receiver.sources, self.handlers, self.following, now=self.clock.now, boot=self.clock.boot
        )
        self.changed_tables = ChangedTables(self.following, self.clock.now)
        self.failures = Failures(self.clock.boot)
        self.anomalies = Anomalies(self.clock.boot)
        self.limited = (self.failures, self.anomalies, self.receiver.refusals)  # of which lines are left out
        self.trouble = Trouble(self.clock.boot)
        self.queue = InboxQueue(
            queue, draw=random_values.bits, boot=self.clock.boot, trouble=self.trouble, watch=self.watch
        )
        self.gaps = Gaps(self.clock.boot)
        self.rejections = Rejections(self.clock.boot)
        processor = Processor(
            policy,
            self.receiver.sources,
            self.following,
            self.pending_receipts,
            self.gaps,
            BusyDocuments(rules.lease_ms),
        )
        self.rules = rules
        self.transactions = WorkerTransactions(
            processor,
            rules,
            handler_times,
            self.clock.now,
            random_values.token,
            self._told,
            self._look,
            Pruner(checked_keep(keep), self.clock.now),
            self.trouble,
        )
        for source in listed(sources):
            self.add(source)

    def add(self, source: Source) -> Source:
        """Add a source. Raises SettingsError when there is one of this name."""
        if not isinstance(source, Source):
            raise SettingsError(
                "sources",
                f"a {type(source).__name__} is not a source",
                hint='sources.named("stripe", secret=…) makes one',
            )
        if source.name in self.receiver.sources:
            raise SettingsError(
                "sources",
                f"there are two sources {source.name!r}",
                hint=f'give one of them another: name="{source.name}-2"',
            )
        self.receiver.sources[source.name] = source
        return source

    def on(
        self,
        source: str,
        pattern: str = "*",
        *,
        version: str | None = None,
        final: bool = True,
        name: str | None = None,
        timeout_s: float | None = None,
        retry: Backoff | None = None,
        informational: bool = False,
    ) -> Callable[[F], F]:
        """Define a handler: `function(event, tx)` for the events of a source (`*`: of all) whose type fits.

        Raises SettingsError for a source that is not there, and for a function that cannot be called so.

        pattern  `document.signed`, `document.*`, `*`
        version  of what it does; None: made from its text
        final    True: its success makes the event `finalized`. False: `processed`, until `finalize` or `reject`
        name     in the rows; None: module and name
        timeout_s  after that it is given up, undone, and tried again like any failure; None: that of the inbox's rules, 20
        retry    how an event is tried again that this handler failed; None: by the inbox's backoff
        informational  True: it also hears of events that move nothing because their workflow calls them informational
                       (`event.change.is_move` is False then). A handler whose pattern fits no type that moves always does
        """

        self._check_source(source)

        def define(function: F) -> F:
            return self.handlers.add(
                function,
                source,
                pattern,
                version=version,
                final=final,
                name=name,
                timeout_s=timeout_s,
                retry=retry,
                informational=informational,
            )

        return define

    def on_undo(
        self, source: str, pattern: str = "*", *, name: str | None = None, timeout_s: float | None = None
    ) -> Callable[[F], F]:
        """Define who undoes what handlers did for a move that is taken back, since its event was rejected: `function(event, tx)`
        for the events of a source whose type fits; `event.change` is where the document goes. Raises SettingsError as `on`."""
        self._check_source(source)
        add = self.following.undoing.handlers.add
        return lambda function: add(
            function, source, pattern, version=None, final=True, name=name, timeout_s=timeout_s
        )

    def follow(self, workflow: Workflow | Table, source: str, pattern: str = "*") -> Workflow:
        """Let a workflow decide what the events of a source mean; handlers hear of those that move something.

        Events that the pattern leaves out and that carry a number of a document count for its order, where the table names
        their type informational. Handlers hear of them as before.
        A table that is followed already goes on by the same workflow, which is returned: `follow` once for each pattern.
        Raises WorkflowError for another table of one document type, SettingsError for a source that is not there.
        """
        self._check_source(source)
        if not isinstance(workflow, Workflow | Table):
            hint = 'inbox.follow(workflow.SIGNING, "surehook", "document.*")'
            raise SettingsError("workflow", f"{workflow!r:.64} is not a table", hint=hint)
        return self.following.add(workflow, source, pattern)

    @property
    def handles_nothing(self) -> bool:
        """True if no handler and no workflow is defined: everything would wait."""
        return not self.handlers and not list(self.following.workflows)

    def samples(self, source: str) -> list[Sample]:
        """The last refused messages of a source, redacted. Raises SettingsError for a source that is not there."""
        self._check_source(source)
        return self.receiver.refusals.samples(source)

    def adopt(self, other: Definitions, change: Callable[[Handler], Handler] = lambda one: one) -> None:
        """Take over the sources, handlers (each changed by `change`) and workflows of another inbox."""
        for source in other.receiver.sources.values():
            self.add(source)
        self.handlers.adopt(other.handlers, change)
        self.following.adopt(other.following)

    def observe(self, observer: Observer) -> Observer:
        """Call `observer(transition)` after each commit for each change of state (`inbox.transitions`), as for a span.

        It runs in the worker: what it raises is logged, what it waits for is waited for. Raises SettingsError for a coroutine,
        which nobody would await.
        """
        check_blocking("observe", observer)
        self.transitions.observe(observer)
        return observer

    def on_dead(self, hook: Hook) -> Hook:
        """Call `hook(failure)` after the commit by which an event was given up (`inbox.failures.Failure`), as to tell people.

        It runs in the worker: what it raises is logged, what it waits for is waited for. Raises SettingsError for a coroutine,
        which nobody would await.
        """
        check_blocking("on_dead", hook)
        self.failures.dead(hook)
        return hook

    def collector(self) -> Collector:
        """A collector for a registry of `prometheus_client`; depth in it is looked at by workers, every ten seconds.

        Raises SettingsError without that package.
        """
        from surehook.inbox.prometheus import Collector

        if self._collector is None:
            self._collector = Collector(self.watch, self.receiver.refusals.counted, self.clock.now)
        return self._collector

    def depth_work(self) -> Callable[[Transaction], Sequence[Depth]]:
        """Count what waits; metrics show that from then on."""

        def work(transaction: Transaction) -> Sequence[Depth]:
            now = self.clock.now()
            found = transaction.depth(now=now, limit=DEPTH_ROWS)
            self.watch.saw(found, now)
            return found

        return work

    def unseen(self, error: Exception) -> None:
        """Note that depth could not be counted: metrics show none then, rather than an old one."""
        log.warning("how much waits could not be looked at: %s", error)
        self.watch.saw((), None)

    def arrived(self, request: StoredRequest, ends: Sequence[Stored]) -> None:
        """Count the outcomes of a stored request, and log the unusual ones."""
        self.trouble.over()
        self.watch.arrived(request.source, ends)
        for event, end in zip(request.events, ends, strict=True):
            if end.kind == "new":
                continue
            if end.kind == "duplicate":
                handlers = self.handlers.fitting(event.source, event.type)
                version = named(handlers)[1] if handlers else ""
                self.watch.duplicate(request.source, pairs(request.headers), version)
            else:
                self.anomalies.conflict(request.source, end.id)

    def decided(self, entry: Entry | None) -> bool:
        """Report a decision to the observers, if an event was waiting for one; whether it was."""
        if entry is not None:
            self.transitions.decided(entry, self.clock.now())
        return entry is not None

    def release_work(
        self, document: str, document_type: str | None, tenant: str, by: str, reason: str
    ) -> Callable[[Transaction], bool]:
        now = self.clock.now()
        return document_commands.release_work(
            document, document_type, tenant, by=by, reason=reason, now=now, following=self.following
        )

    def grant_work(
        self, document: str, document_type: str | None, tenant: str, token: str | None, by: str, reason: str
    ) -> Callable[[Transaction], str]:
        return document_commands.grant_work(
            document,
            document_type,
            tenant,
            token=token or f"rmt_{self._random_values.bits(16).hex()}",
            by=by,
            reason=reason,
            now=self.clock.now(),
            following=self.following,
        )

    def unstored(self, taken: BelievedRequest, error: Exception) -> Reply:
        """Answer a sender when nothing was committed, or nobody knows; counted as a refusal."""
        reply, code = self.trouble.unstored(error)
        self.receiver.refusals.count(taken.source.name, code)
        return reply

    def _source(self, name: str) -> Source:
        """The source of this name. Raises SettingsError."""
        self._check_source(name)
        if name not in self.receiver.sources:
            raise SettingsError("source", f"{name!r} is not a source", hint="name one of them")
        return self.receiver.sources[name]

    def _no_source(self, name: str) -> SettingsError:
        return no_source(name, self.receiver.sources)

    def _check_source(self, name: str) -> None:
        if not isinstance(name, str):
            called = getattr(name, "__qualname__", None) or f"{name!r:.64}"
            raise SettingsError(
                "source", f"{called} is not the name of a source", hint='@inbox.on("stripe", "invoice.*")'
            )
        if name != "*" and name not in self.receiver.sources:
            raise self._no_source(name)

    def _look(self, transaction: Transaction, is_idle: bool) -> bool:
        """Do a worker's chores, now and then: take up parked events that have a handler by now, wake documents whose table was
        changed, and count depth, if somebody scrapes; whether events were taken up. A failure here keeps nobody from working."""
        taken = False
        if self.unhandled_events.is_due:
            with trying(transaction, not_seen("parked")):
                taken = self.unhandled_events.look(transaction)
        if self.changed_tables.is_due:
            with trying(transaction, not_seen("held")):
                self.changed_tables.look(transaction)
        for one in self.limited if is_idle else ():
            one.say_left_out()
        if self._collector is not None and not 0 <= (now := self.clock.now()) - self._looked < DEPTH_MS:
            self._looked = now
            with trying(transaction, self.unseen):
                self.depth_work()(transaction)
        return taken

    def _told(self, done: BatchResult) -> None:
        self.watch.report(done)
        self.transitions.report(done)
        for run, ended in done.settlements:
            if ended.state == "parked":
                self.unhandled_events.report(run, ended)
            else:
                self.failures.report(run, ended)
                self.rejections.report(run, ended)
        for run, ended in done.not_undone:
            self.failures.not_undone(run, ended)
        for one in done.decided:
            self.gaps.report(one)
            self.rejections.decided(one)
        for run in done.changed:
            self.anomalies.changed(run.event)
