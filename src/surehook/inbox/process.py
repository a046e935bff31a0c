"""Processing claimed runs in one transaction: their effects, and the mark that they are done.

A batch of runs shares a transaction, as requests do on their way in; each has a savepoint of its own, so one that fails is
undone alone and is still settled with the others. What makes the whole transaction fail is nobody's fault that can be named:
then each run gets a transaction of its own, and the one that fails there is the one. A transaction that has taken its time is
committed, and what it did not come to is given back: until then all that handlers wrote is locked.

Only runs that the token still owns are begun. They stay locked until the commit, so no other worker can take them meanwhile:
either the effects and the mark are both there, or neither is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, structs

from surehook.core import instants
from surehook.core.verification import VerifyError
from surehook.core.workflow.decide import Arrival
from surehook.inbox import event as events
from surehook.inbox.ends import Ends
from surehook.inbox.event import Event
from surehook.inbox.following import Decided, Desk, Following, out_of_line
from surehook.inbox.gaps import Gaps
from surehook.inbox.pending_receipts import Owing
from surehook.inbox.sources.source import Source
from surehook.inbox.transitions import quoted
from surehook.inbox.undoing import AGAIN_MS
from surehook.inbox.workflow import NoDocument, Workflow
from surehook.ports.inbox import NO_HANDLER, UNKNOWN_SOURCE, Book, DocumentKey, Run, Settlement, StoreError

log = logging.getLogger("surehook.inbox")


class Done(Struct):
    """The outcome of a batch.

    settlements  how each run was settled
    changed      runs that gave another result than the event gave before
    lost         runs that another worker had taken
    left         how many were given back, for others to take
    decided      every decision about a document
    released     ids of runs that had been held before this batch
    at           when this was, Unix milliseconds
    not_undone   runs whose move could not be undone, for the documents that wait for that; and when it is tried again
    """

    settlements: list[tuple[Run, Settlement]]
    changed: list[Run]
    lost: int = 0
    left: int = 0
    decided: Sequence[Decided] = ()
    released: frozenset[bytes] = frozenset()
    at: int = 0
    not_undone: Sequence[tuple[Run, Settlement]] = ()


class Todo(Struct):
    """A run that can be handled, or how it ended before that."""

    run: Run
    event: Event | None = None
    ended: Settlement | None = None
    workflow: Workflow | None = None
    key: DocumentKey | None = None
    arrival: Arrival | None = None
    uncounted: tuple[DocumentKey, int] | None = (
        None  # it has this number of that document, which does not count it
    )


class Processor:
    """Handlers, sources, workflows and rules, ready to process."""

    def __init__(
        self, ends: Ends, sources: Mapping[str, Source], following: Following, owing: Owing, gaps: Gaps
    ) -> None:
        self._ends = ends
        self._gaps = gaps
        self._owing = owing
        self._sources = sources
        self._following = following

    @property
    def follows(self) -> list[str]:
        """The types of documents that are followed here."""
        return [one.document_type for one in self._following.workflows]

    def process(
        self,
        book: Book,
        runs: Sequence[Run],
        token: bytes,
        waking: Sequence[DocumentKey] = (),
        *,
        rest: Sequence[Run] = (),
        is_over: Callable[[], bool] = lambda: False,
    ) -> Done:
        """Handle what is still ours, let time pass for documents, settle, and leave the commit to the caller.

        rest     of the same token, not to be handled: given back
        is_over  asked after each run: the others are given back as well
        """
        mine = book.hold([run.id for run in runs], token) if runs else set()
        todo = [self._prepare(run) for run in runs if run.id in mine]
        keys = [one.key for one in todo if one.key is not None]
        asleep = [(key, flow) for key in waking if (flow := self._following.by_type(key[0])) is not None]
        desk = Desk(book, self._ends, self._following, self.read, [*keys, *(key for key, _ in asleep)])
        for key, workflow in asleep:
            desk.wake(workflow, key)
        begun = 0
        for one in todo:
            if begun and is_over():
                break
            self._one(book, desk, one)
            begun += 1
        left = [*(one.run for one in todo[begun:]), *rest]
        if left:
            book.release(left, token, due_at=self._ends.now())
        ended = list(desk.settled.values())
        changed = self._changed(book, ended)
        book.settle([settlement for _, settlement in ended])
        self._owing.settled(book, ended)
        desk.keep(self._following.identify)
        released = frozenset(run.id for run, _ in ended) - mine
        at = self._ends.now()
        not_undone = [(one.run, one.ended) for one in desk.not_undone.values()]
        return Done(ended, changed, len(runs) - len(mine), len(left), desk.decided, released, at, not_undone)

    def fail(self, book: Book, run: Run, token: bytes, error: Exception) -> Done:
        """Settle a run whose transaction could not be committed, or whose handler was given up: it was claimed with this token,
        or held for its document, and another run let it go on."""
        mine = book.hold([run.id], token)
        was_held = not mine and self._leaves(book, run)
        ended = [(run, self._ends.badly(run, error, "commit_failed"))] if mine or was_held else []
        book.settle([settlement for _, settlement in ended])
        self._owing.settled(book, ended)
        released = frozenset([run.id] if was_held else [])
        return Done(ended, [], 0 if ended else 1, released=released, at=self._ends.now())

    def _leaves(self, book: Book, run: Run) -> bool:
        """Take a run that is held out of its document's line, to be tried again by itself; whether it was held still."""
        key = self._prepare(run).key
        if key is None:
            return False
        row = book.documents([key])[key]
        if not any(one.id == run.id for one in book.held_runs(key, [run.event_id])):
            return False
        book.keep_documents([out_of_line(row, run.event_id, self._ends.now())])
        return True

    def put_off(self, book: Book, key: DocumentKey, error: Exception) -> None:
        """Let a document wait that could not go on, for as long as it has waited by now: twice as long each time."""
        row, now = book.documents([key])[key], self._ends.now()
        if row.wake_at is None or row.wake_at > now:
            return
        least, most = AGAIN_MS
        wake_at = now + min(max(now - row.updated_at, least), most)
        book.keep_documents([structs.replace(row, wake_at=wake_at)])
        log.warning(
            "%s %s cannot go on, and is put off until %s: %s: %s",
            key[0], quoted(key[2]), instants.render(wake_at), type(error).__name__, error,
        )  # fmt: skip

    def read(self, run: Run) -> Event:
        """The event of a run. Raises VerifyError, KeyError for a source that is not defined here."""
        return events.read(run, self._sources[run.source])

    def _prepare(self, run: Run) -> Todo:
        ends = self._ends
        if run.attempts > 1 and run.attempts > ends.attempts(run):  # the last ones ended with their process
            return Todo(run, ended=ends.exhausted(run))
        if run.body is None:
            return Todo(run, ended=ends.end(run, "rejected", code="body_expired"))
        if run.source not in self._sources:
            return Todo(run, ended=ends.parked(run, UNKNOWN_SOURCE))
        try:
            event = self.read(run)
        except Exception as error:  # it was read before it was stored: the source was changed since
            said = str(error) if isinstance(error, VerifyError) else f"{type(error).__name__}: {error}"
            return Todo(run, ended=ends.failed(run, "unreadable", said))
        workflow = self._following.of(run.source, run.type)
        if workflow is None:
            return self._beside(run, event)
        try:
            document, arrival = workflow.read(event, source=run.source)
        except NoDocument as error:
            return Todo(run, ended=ends.end(run, "rejected", code="no_document", error=str(error)))
        return Todo(
            run, event, workflow=workflow, key=(workflow.document_type, run.tenant, document), arrival=arrival
        )

    def _beside(self, run: Run, event: Event) -> Todo:
        """An event that no pattern fits: its document counts it, where the table calls it informational."""
        found = self._following.beside(run, event)
        if found is None:
            return Todo(run, event)
        workflow, document, arrival = found
        key = (workflow.document_type, run.tenant, document)
        if workflow.table.name(arrival.type) in workflow.table.informational:
            return Todo(run, event, workflow=workflow, key=key, arrival=arrival)
        return Todo(run, event, uncounted=(key, arrival.sequence or 0))

    def _one(self, book: Book, desk: Desk, one: Todo) -> None:
        if one.ended is not None:
            desk.settle(one.run, one.ended)
            return
        assert one.event is not None
        if one.workflow is not None and one.key is not None and one.arrival is not None:
            desk.arrives(one.workflow, one.key, one.arrival, one.run, one.event)
        else:
            if one.uncounted is not None:
                self._gaps.uncounted(book, one.run, *one.uncounted)
            desk.settle(one.run, self._plain(book, one.run, one.event))

    def _plain(self, book: Book, run: Run, event: Event) -> Settlement:
        """An event that no workflow follows."""
        if not self._ends.handlers.fitting(run.source, run.type):
            if self._sources[run.source].ignores(run.type):
                return self._ends.end(run, "ignored", code="not_wanted")
            return self._ends.parked(run, NO_HANDLER)
        try:
            with book.savepoint():
                called = self._ends.call(book, run, event)
        except StoreError:
            raise
        except Exception as error:
            return self._ends.badly(run, error)
        return self._ends.well(run, called)

    def _changed(self, book: Book, ended: list[tuple[Run, Settlement]]) -> list[Run]:
        """Replays that gave another result than the event gave before, marked as such."""
        again = [(run, one) for run, one in ended if run.number > 0 and one.result_sha256 is not None]
        if not again:
            return []
        before = book.last_results([run.event for run, _ in again])
        changed = []
        for run, one in again:
            one.changed = before.get(run.event, one.result_sha256) != one.result_sha256
            if one.changed:
                changed.append(run)
        return changed
