"""Processing claimed runs in one transaction: their effects, and the mark that they are done.

A batch of runs shares a transaction, as requests do on their way in; each has a savepoint of its own, so one that fails is
undone alone and is still settled with the others. What makes the whole transaction fail is nobody's fault that can be named:
then each run gets a transaction of its own, and the one that fails there is the one. A transaction that has taken its time is
committed, and what it did not come to is given back: until then all that handlers wrote is locked.

Only runs that the token still owns are begun. They stay locked until the commit, so no other worker can take them meanwhile:
either the effects and the mark are both there, or neither is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct, structs

from surehook.core import instants
from surehook.core.verification import VerifyError
from surehook.core.workflow import undo_attempts
from surehook.core.workflow.decide import Arrival
from surehook.inbox import event as events
from surehook.inbox import undoing
from surehook.inbox.backoff import for_as_long
from surehook.inbox.batch_results import BatchAttempt, BatchResult
from surehook.inbox.busy_documents import BusyDocuments
from surehook.inbox.document_batch import DocumentBatch
from surehook.inbox.document_rows import document_of, out_of_line, step_of, text_of
from surehook.inbox.event import Event
from surehook.inbox.following import Following
from surehook.inbox.gaps import Gaps
from surehook.inbox.handler_errors import words
from surehook.inbox.pending_receipts import PendingReceipts
from surehook.inbox.quoting import quoted
from surehook.inbox.rejections import NO_DOCUMENT
from surehook.inbox.result_policy import ResultPolicy
from surehook.inbox.runs_in_hand import Waking
from surehook.inbox.safe_log import log
from surehook.inbox.sources.source import Source
from surehook.inbox.standing_documents import StandingDocuments
from surehook.inbox.workflow import NoDocument, Workflow
from surehook.ports.inbox import NO_HANDLER, UNKNOWN_SOURCE, Settlement, StoreError, Transaction
from surehook.ports.inbox_runs import DocumentKey, Run, due_since


class PreparedRun(Struct):
    """A run that can be handled, or its end before that."""

    run: Run
    event: Event | None = None
    ended: Settlement | None = None
    workflow: Workflow | None = None
    key: DocumentKey | None = None
    arrival: Arrival | None = None
    # It has this number of that document, which does not count it.
    uncounted: tuple[DocumentKey, int] | None = None


class Processor:
    """Handlers, sources, workflows and rules, ready to process."""

    def __init__(
        self,
        policy: ResultPolicy,
        sources: Mapping[str, Source],
        following: Following,
        pending_receipts: PendingReceipts,
        gaps: Gaps,
        busy: BusyDocuments,
    ) -> None:
        self.busy = busy
        self._policy = policy
        self._gaps = gaps
        self._pending_receipts = pending_receipts
        self._sources = sources
        self._following = following

    @property
    def follows(self) -> list[str]:
        """The types of documents that are followed here."""
        return [one.document_type for one in self._following.workflows]

    def process(
        self,
        transaction: Transaction,
        runs: Sequence[Run],
        token: bytes,
        waking: Mapping[DocumentKey, Waking],
        *,
        rest: Sequence[Run] = (),
        is_over: Callable[[], bool] = lambda: False,
        attempt: BatchAttempt | None = None,
        alone: bool = False,
        leased: Collection[DocumentKey] = (),
        may_undo: bool = True,
        may_carry: bool = False,
    ) -> BatchResult:
        """Handle what is still ours, let time pass for documents, settle, and leave the commit to the caller.

        rest     of the same token, not to be handled: given back
        is_over  asked before the first run and after each: the others are given back as well
        attempt  is told what happens
        alone    events that wait for one of these have transactions of their own
        leased   documents that are woken right after this transaction
        waking   documents that wake
        may_undo  functions may be called that undo something; else that is noted, and left
        may_carry  runs whose document is busy may stay claimed for the next batch, once, if that is not the most of them
        """
        attempt = BatchAttempt() if attempt is None else attempt
        mine = transaction.hold([run.id for run in runs], token) if runs else set()
        todo = [self._prepare(run) for run in runs if run.id in mine]
        todo, late = self._in_turn(token, todo)
        # Once: what was carried over to this batch is put off.
        stay = may_carry and len(late) <= len(todo) and not self._were_carried(token, late)
        keys = [one.key for one in todo if one.key is not None]
        asleep = [(key, flow) for key in waking if (flow := self._following.by_type(key[0])) is not None]
        locked = [*keys, *(key for key, _ in asleep)]
        batch = DocumentBatch(transaction, self._policy, self._following, self, locked, leased)
        to_undo = [
            key for key, workflow in asleep if not batch.wake(workflow, key, waking[key], may_undo=may_undo)
        ]
        begun, attempt.is_begun = 0, bool(todo)
        try:
            for one in todo:
                is_late = is_over()
                if begun and (is_late or transaction.has_changed_session):
                    break
                self._one(transaction, batch, one, alone=alone)
                begun += 1
        finally:
            attempt.is_shared = batch.is_shared
        left = todo[begun:]
        put_off = self._give_back(transaction, token, [] if stay else late, left, rest)
        ended = list(batch.settled.values())
        changed = self._changed(transaction, ended)
        transaction.settle([settlement for _, settlement in ended])
        self._pending_receipts.settled(transaction, ended)
        batch.keep(self._following.identify)
        for key, again_at, error in batch.undecided:
            self._gaps.undecided(key, again_at, error)
        released = frozenset(run.id for run, _ in ended) - mine
        at = self._policy.now()
        not_undone = [(one.run, one.ended) for one in batch.not_undone.values()]
        return BatchResult(
            ended,
            changed,
            len(runs) - len(mine),
            len(left) + len(rest),
            batch.decided,
            released,
            at,
            not_undone,
            bool(to_undo),
            put_off,
            late if stay else [],
            has_changed_session=bool(begun) and transaction.has_changed_session,
        )

    def _in_turn(
        self, token: bytes, todo: list[PreparedRun]
    ) -> tuple[list[PreparedRun], list[tuple[DocumentKey, Run]]]:
        """Take the documents of a batch. Returns the runs that are handled now, and those that are not: another worker of this
        process has their document."""
        found = [(one.key, one.run) for one in todo if one.key is not None]
        tried = {run.id for _, run in found if not _may_line_up(run)}
        waiting = self.busy.enter(token, [(key, run.id) for key, run in found], tried=tried)
        late = [(key, run) for key, run in found if run.id in waiting]
        return [one for one in todo if one.run.id not in waiting], late

    def _were_carried(self, token: bytes, runs: Sequence[tuple[DocumentKey, Run]]) -> bool:
        return any(self.busy.was_carried(token, run.id) for _, run in runs)

    def _give_back(
        self,
        transaction: Transaction,
        token: bytes,
        late: Sequence[tuple[DocumentKey, Run]],
        left: Sequence[PreparedRun],
        rest: Sequence[Run],
    ) -> list[tuple[DocumentKey, bytes]]:
        """Put off who is late, and give back what was not handled; there, those whose document others wait for line up with them.
        Returns what was put off."""
        put_off, given_back = [(key, run.id) for key, run in late], [*rest]
        for one in left:
            if one.key is not None and _may_line_up(one.run) and self.busy.is_waited_for(one.key):
                put_off.append((one.key, one.run.id))
            else:
                given_back.append(one.run)
        if put_off:
            self.put_off_until_free(transaction, token, put_off)
        if given_back:
            transaction.release([run.id for run in given_back], token, due_at=due_since(given_back))
        return put_off

    def put_off_until_free(
        self, transaction: Transaction, token: bytes, runs: Sequence[tuple[DocumentKey, bytes]]
    ) -> None:
        """Put off runs until their documents are free, and for a while at most."""
        until = self._policy.now() + self.busy.put_off_ms({key for key, _ in runs})
        transaction.put_off([run for _, run in runs], token, until=until)

    def first_free(
        self, runs: Sequence[Run], token: bytes
    ) -> tuple[Run | None, list[tuple[DocumentKey, bytes]]]:
        """Find the first of these runs whose document no other worker has, and take that. Beside it those that wait: for their
        documents, or for its own."""
        first, busy = None, list[tuple[DocumentKey, bytes]]()
        for run in runs:
            key = self.located(run).key
            if key is None:
                first = first or run
            elif first is None:
                tried = () if _may_line_up(run) else (run.id,)
                if self.busy.enter(token, [(key, run.id)], tried=tried):
                    busy.append((key, run.id))
                else:
                    first = run
            elif _may_line_up(run) and self.busy.is_busy(key):
                busy.append((key, run.id))
        return first, busy

    def is_elsewhere(self, run: Run, token: bytes) -> bool:
        """Tell whether another worker of this process is at work on a run's document."""
        key = self.located(run).key
        return key is not None and self.busy.is_anothers(key, token)

    def fail(self, transaction: Transaction, run: Run, token: bytes, error: Exception) -> BatchResult:
        """Settle a run whose transaction could not be committed, or whose handler was given up: it was claimed with this token,
        or held for its document, and another run let it go on. Or its move was to be undone: then its document is put off."""
        mine = transaction.hold([run.id], token)
        settlement = self._policy.failed_with(run, error, "commit_failed")
        was_held = not mine and self._leaves(transaction, run, settlement)
        if not mine and not was_held and (later := self._not_undone(transaction, run, error)) is not None:
            return BatchResult([], [], at=self._policy.now(), not_undone=[(run, later)])
        if mine:
            self._keep_place(transaction, run, settlement)
        ended = [(run, settlement)] if mine or was_held else []
        transaction.settle([settlement for _, settlement in ended])
        self._pending_receipts.settled(transaction, ended)
        released = frozenset([run.id] if was_held else [])
        return BatchResult(ended, [], 0 if ended else 1, released=released, at=self._policy.now())

    def _keep_place(self, transaction: Transaction, run: Run, ended: Settlement) -> None:
        """Let what stands behind a run's event in its document wait for it, as it is tried again by itself."""
        prepared = self._prepare(run)
        key, workflow, arrival = prepared.key, prepared.workflow, prepared.arrival
        if key is None or workflow is None or arrival is None:
            return
        documents = StandingDocuments(transaction.documents([key]), self._policy.now)
        documents.keeps_place(workflow.table, key, arrival, run, back_at=self._policy.back_at(ended))
        transaction.keep_documents(documents.rows())

    def _leaves(self, transaction: Transaction, run: Run, ended: Settlement) -> bool:
        """Take a held run out of its document's queue, with this end; whether it was held still."""
        prepared = self._prepare(run)
        key, workflow = prepared.key, prepared.workflow
        if key is None or workflow is None:
            return False
        row = transaction.documents([key])[key]
        if not any(one.id == run.id for one in transaction.held_runs(key, [run.event_id])):
            return False
        back_at = self._policy.back_at(ended)
        left = out_of_line(workflow.table, row, run, self._policy.now(), back_at=back_at)
        transaction.keep_documents([left])
        return True

    def _not_undone(self, transaction: Transaction, run: Run, error: Exception) -> Settlement | None:
        """Put off the document that waits until the move of this run is undone; None: none does."""
        found = transaction.effective_step(run.event)
        if found is None:
            return None
        row = transaction.documents([found[0]])[found[0]]
        document, step = document_of(row.body), step_of(found[1])
        event = Arrival(id=step.event, type="", source=step.source)
        if document is None or not any(undo_attempts.undoes(word, event) for word in document.words):
            return None
        # It hangs in a thread, or could not be committed: it waits as one does that ended its process.
        later = self._following.undoing.later(self._policy, run, error, undoing.wait_ms(document, error))
        document = undo_attempts.failed(document)
        transaction.keep_documents([structs.replace(row, body=text_of(document), wake_at=later.due_at)])
        return structs.replace(later, attempts=undo_attempts.tries(document))

    def put_off(self, transaction: Transaction, key: DocumentKey, error: Exception) -> None:
        """Let a document wait that could not go on, for as long as it should have gone on by now: twice as long each time. Where
        something was to be undone, an attempt at that has failed."""
        row, now = transaction.documents([key])[key], self._policy.now()
        workflow, document = self._following.by_type(key[0]), document_of(row.body)
        if workflow is None or document is None or (since := workflow.wake_at(document)) is None:
            return
        wait_ms = for_as_long(now - since)
        if undo_attempts.is_to_be_undone(document):
            document = undo_attempts.failed(document)
            wait_ms = undoing.wait_ms(document, error)
        wake_at = now + wait_ms
        transaction.keep_documents([structs.replace(row, body=text_of(document), wake_at=wake_at)])
        log.warning(
            "%s %s cannot go on, and is put off until %s: %s: %s",
            key[0], quoted(key[2]), instants.render(wake_at), type(error).__name__, error,
        )  # fmt: skip

    def read(self, run: Run) -> Event:
        """Read the event of a run. Raises VerifyError, KeyError for a source that is not defined here."""
        return events.read(run, self._sources[run.source])

    def read_or_end(self, run: Run) -> Event | Settlement:
        """Read the event of a run, or end the run, where it cannot be read here."""
        if run.body is None:
            return self._policy.end(run, "rejected", code="body_expired")
        if run.source not in self._sources:
            return self._policy.parked(run, UNKNOWN_SOURCE)
        try:
            return self.read(run)
        except Exception as error:  # it was read before it was stored: the source was changed since
            said = str(error) if isinstance(error, VerifyError) else f"{type(error).__name__}: {words(error)}"
            return self._policy.failed(run, "unreadable", said)

    def _prepare(self, run: Run) -> PreparedRun:
        policy = self._policy
        if run.attempts > 1 and run.attempts > policy.attempts(run):  # the last ones ended with their process
            return structs.replace(self.located(run), ended=policy.exhausted(run))
        return self.located(run)

    def located(self, run: Run, *, asks: bool = True) -> PreparedRun:
        """Read the event of a run, and find its document. `asks`: whether its token is good is asked for."""
        policy, event = self._policy, self.read_or_end(run)
        if isinstance(event, Settlement):
            return PreparedRun(run, ended=event)
        workflow = self._following.of(run.source, run.type)
        if workflow is None:
            return self._beside(run, event, asks=asks)
        try:
            document, arrival = workflow.read(event, source=run.source, asks=asks)
        except NoDocument as error:
            return PreparedRun(run, ended=policy.end(run, "rejected", code=NO_DOCUMENT, error=str(error)))
        return PreparedRun(
            run, event, workflow=workflow, key=(workflow.document_type, run.tenant, document), arrival=arrival
        )

    def _beside(self, run: Run, event: Event, *, asks: bool) -> PreparedRun:
        """Prepare an event that no pattern fits: its document counts it, where the table calls it informational."""
        found = self._following.beside(run, event, asks=asks)
        if found is None:
            return PreparedRun(run, event)
        workflow, document, arrival = found
        key = (workflow.document_type, run.tenant, document)
        if workflow.table.name(arrival.type) in workflow.table.informational:
            return PreparedRun(run, event, workflow=workflow, key=key, arrival=arrival)
        return PreparedRun(run, event, uncounted=(key, arrival.sequence or 0))

    def _one(self, transaction: Transaction, batch: DocumentBatch, one: PreparedRun, *, alone: bool) -> None:
        if one.ended is not None:
            batch.settle(one.run, one.ended)
            if one.workflow is not None and one.key is not None and one.arrival is not None:
                batch.gives_up(one.workflow, one.key, one.arrival, one.run)
            return
        assert one.event is not None
        if one.workflow is not None and one.key is not None and one.arrival is not None:
            batch.arrives(one.workflow, one.key, one.arrival, one.run, one.event, alone=alone)
        else:
            if one.uncounted is not None:
                self._gaps.uncounted(transaction, one.run, *one.uncounted)
            batch.settle(one.run, self._plain(transaction, one.run, one.event))

    def _plain(self, transaction: Transaction, run: Run, event: Event) -> Settlement:
        """Handle an event that no workflow follows."""
        if not self._policy.handlers.fitting(run.source, run.type):
            if self._sources[run.source].ignores(run.type):
                return self._policy.end(run, "ignored", code="not_wanted")
            return self._policy.parked(run, NO_HANDLER)
        try:
            with transaction.savepoint():
                called = self._policy.call(transaction, run, event)
        except StoreError:
            raise
        except Exception as error:
            return self._policy.failed_with(run, error)
        return self._policy.succeeded(run, called)

    def _changed(self, transaction: Transaction, ended: list[tuple[Run, Settlement]]) -> list[Run]:
        """Mark replays that gave another result than the event gave before."""
        again = [(run, one) for run, one in ended if run.number > 0 and one.result_sha256 is not None]
        if not again:
            return []
        before = transaction.last_results([run.event for run, _ in again])
        changed = []
        for run, one in again:
            one.changed = before.get(run.event, one.result_sha256) != one.result_sha256
            if one.changed:
                changed.append(run)
        return changed


def _may_line_up(run: Run) -> bool:
    """Tell whether a run may be put off for its document. Not if it was tried, or left the queue: those behind it in the document
    wait for it until an instant that the document knows. Nor if it ended its process: it would be claimed with others."""
    return run.error_code is None and run.attempts <= 1
