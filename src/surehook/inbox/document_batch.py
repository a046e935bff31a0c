"""The documents of one batch of runs: what an event means is decided by the table, and handlers hear of moves.

A document is locked before it is read, so its events take effect one after the other, whichever worker has them. The decision,
the document, the journal and the handlers' effects are one commit. What comes early waits in the document, its run is `held`;
when its predecessor has come, both take effect in the same transaction, in their order.

If a handler fails for the event itself, nothing of its decision stands, but that what comes behind it waits for it. If it fails
for one that had waited, that one leaves
the document's queue and is tried again by its own backoff, and the event that let it go on stands. If that fails in its turn,
the other has left the queue all the same: its run is not held any more, and nothing else would hand it in.

So that each failure is its own event's, events that had waited go on *alone* where nobody would know whose it was: as time passes
for the document, and where the event that lets them go on has failed before. Then each of them leaves the queue, and has a
transaction of its own, an attempt that is counted, and a lease.

An event lets no time pass: another that came in time may not have been processed yet. What is said of a document, and waits that
are over, are a matter of its waking (`Transaction.waking`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import msgspec
from msgspec import structs

from surehook.core.workflow.decide import (
    Arrival,
    Decision,
    Document,
    Step,
    WorkflowError,
    due_at,
    fitting,
)
from surehook.core.workflow.undo_attempts import failed, is_to_be_undone, tries, wait_ms
from surehook.inbox.document_rows import step_of
from surehook.inbox.document_runs import Concerned, Decided, Read, Readers
from surehook.inbox.event import Event
from surehook.inbox.following import Following
from surehook.inbox.handlers import Ignore, Refuse
from surehook.inbox.result_policy import ResultPolicy
from surehook.inbox.runs_in_hand import Waking
from surehook.inbox.safe_log import log
from surehook.inbox.standing_documents import DocumentMark, StandingDocuments
from surehook.inbox.step_ends import StepEnds
from surehook.inbox.undoing import UNDO_FAILED, UndoFailed
from surehook.inbox.workflow import Workflow
from surehook.ports.inbox import LINE_FULL, Settlement, StepRow, StoreError, Transaction
from surehook.ports.inbox_runs import DocumentKey, Run


class BatchMark(NamedTuple):
    """A document, and what was noted in its batch, before others left its queue."""

    document: DocumentMark
    settled: dict[bytes, tuple[Run, Settlement]]
    held: dict[tuple[DocumentKey, tuple[str, str]], Read]


class DocumentBatch:
    """The documents of one batch, in one transaction: locked at first, decided on, and kept in the end."""

    def __init__(
        self,
        transaction: Transaction,
        policy: ResultPolicy,
        following: Following,
        events: Readers,
        keys: Sequence[DocumentKey],
        leased: Collection[DocumentKey] = (),
    ) -> None:
        """`leased`: those that are woken right after this batch."""
        self._transaction, self._policy, self._following, self._events = (
            transaction,
            policy,
            following,
            events,
        )
        self._leased = leased
        self._ends = StepEnds(policy, following)
        self._documents = StandingDocuments(transaction.documents(keys) if keys else {}, policy.now)
        self.decided: list[Decided] = []
        # These wait until something is undone.
        self.not_undone: dict[DocumentKey, UndoFailed] = {}
        # Their table lacks their state; and when they are looked at again.
        self.undecided: list[tuple[DocumentKey, int, WorkflowError]] = []
        # Held in this batch, so not yet in the database.
        self._held: dict[tuple[DocumentKey, tuple[str, str]], Read] = {}
        # What had made a move that is taken back, by document and event.
        self._undone: dict[tuple[DocumentKey, str, str], Run | None] = {}
        # By run: one that was held may leave in the same batch.
        self.settled: dict[bytes, tuple[Run, Settlement]] = {}
        # Handlers were called for an event that had waited, together with the one that let it go on.
        self.is_shared = False

    def arrives(
        self,
        workflow: Workflow,
        key: DocumentKey,
        arrival: Arrival,
        run: Run,
        event: Event,
        *,
        alone: bool = False,
    ) -> None:
        """Decide on an event, call the handlers of its moves, and note the end of every run that it concerns. `alone`: those
        that it lets go on have transactions of their own."""
        document = self._documents[key]
        if document is not None and is_to_be_undone(document):
            self._put_off(workflow, key, document, arrival, run)
            return
        before = self._transaction.effective_step(run.event) if run.number > 0 else None
        if before is not None:
            self._again(workflow, run, structs.replace(event, change=step_of(before[1])))
            return
        self._decide(workflow, key, arrival, Read(run, event), alone=alone or run.attempts > 1)

    def settle(self, run: Run, settlement: Settlement) -> None:
        """Note the end of a run."""
        self.settled[run.id] = (run, settlement)

    def wake(self, workflow: Workflow, key: DocumentKey, waking: Waking, *, may_undo: bool = True) -> bool:
        """Let time pass for a document, if it still waits for that, and is still leased. False: functions are to be called that
        undo something, and not yet; that it will be tried is noted."""
        document = self._documents[key]
        if not self._documents.waits(key, leased_until=waking.leased_until) or document is None:
            return True
        if not may_undo and self._following.undoing.handlers and is_to_be_undone(document):
            if self._documents.is_too_early_to_undo(key):
                return True
            self._documents.tries_to_undo(key)
            return False
        self._decide(workflow, key, None, None, alone=True, until=waking.instant)
        return True

    def gives_up(self, workflow: Workflow, key: DocumentKey, arrival: Arrival, run: Run) -> None:
        """Have nothing wait any longer for an event that ended without being handled."""
        self._keep_place(workflow, key, arrival, run)

    def keep(self, identify: Callable[[], bytes]) -> None:
        """Write the documents that were decided on, and the journal."""
        self._transaction.keep_documents(self._documents.rows())
        self._transaction.journal(
            [
                StepRow(
                    id=identify(),
                    key=key,
                    event=None if run is None else run.event,
                    event_id=step.event,
                    verdict=step.verdict,
                    at=step.at,
                    body=msgspec.json.encode(step).decode(),
                )
                for key, step, run, _ in self.decided
                if step.rule != LINE_FULL
            ]
        )
        self._call_back()

    def _call_back(self) -> None:
        """Have those tried at once for which there was no room, and is by now."""
        for key, document in self._documents.changed():
            workflow = self._following.by_type(key[0])
            back = [] if workflow is None else fitting(workflow.table.order, document)
            if back:
                names = [(one.source, one.id) for one in back]
                self._transaction.hasten(
                    key[1], names, codes=(LINE_FULL, UNDO_FAILED), now=self._policy.now()
                )

    def _again(self, workflow: Workflow, run: Run, event: Event) -> None:
        """Replay an event that took effect: call its handlers with the move that it made then; the document stays."""
        assert event.change is not None
        try:
            with self._transaction.savepoint():
                ended = self._ends.ended(self._transaction, workflow, event.change, Read(run, event))
        except StoreError:
            raise
        except Exception as error:
            self.settle(run, self._policy.failed_with(run, error))
        else:
            self.settle(run, ended)

    def _decide(
        self,
        workflow: Workflow,
        key: DocumentKey,
        arrival: Arrival | None,
        own: Read | None,
        *,
        alone: bool,
        until: int | None = None,
    ) -> None:
        """Without an event of its own, time passes for the document `until` then."""
        said: dict[bytes, Settlement] = {}
        mark: BatchMark | None = None
        # Once more for each waiting event that leaves without its turn: at most as often as events wait.
        while True:
            now, document = self._policy.now(), self._documents[key]
            try:
                decision = workflow.decide(document, arrival, now=now, passes=own is None, until=until)
            except WorkflowError as error:  # it stands in a state that the table lacks: the table was changed
                self._stays(workflow, key, own, error)
                return
            runs, leaving = self._concerned(key, decision, own)
            # Those that cannot be read leave at once: to wait for one would be to wait for ever.
            if not leaving:
                shared = self._ends.shared(workflow, decision, runs, own)
                self.is_shared = self.is_shared or bool(shared)
                if alone and shared:
                    mark = mark or BatchMark(self._documents.mark(key), dict(self.settled), dict(self._held))
                    # Without an order nothing else would keep the others behind the first.
                    first = shared[:1] if workflow.table.order.mode == "free" else shared
                    leaving = [self._ends.alone(one.run) for one in first]
            if leaving:
                self._leave(workflow, key, leaving, passed=until)
                continue
            try:
                failed = self._handle(workflow, key, decision, runs, own, said)
            except UndoFailed as error:
                self.not_undone[key] = error
                self._documents.failed_to_undo(key, error.ended.due_at)
                return
            if failed is None:
                break
            if failed.id in said:
                continue
            if own is not None and failed.id == own.run.id:
                assert arrival is not None
                if mark is not None:  # nothing let the others go, after all
                    self._documents.restored(key, mark.document)
                    self._held, self.settled = mark.held, mark.settled | {failed.id: self.settled[failed.id]}
                self._keep_place(workflow, key, arrival, failed)
                return
            self._leave(workflow, key, [self.settled[failed.id]])
        self._stand(key, decision, runs)

    def _stays(self, workflow: Workflow, key: DocumentKey, own: Read | None, error: WorkflowError) -> None:
        """Nobody here can decide about the document. A process that has another table may, so it is soon looked at again."""
        if own is not None:
            self.settle(own.run, self._policy.failed_with(own.run, error, "workflow_error"))
            return
        document, now = self._documents[key], self._policy.now()
        assert document is not None
        due = due_at(workflow.table, document)
        again_at = self._documents.stays(key, due)
        if due is not None and due <= now and again_at is not None:
            self.undecided.append((key, again_at, error))

    def _stand(self, key: DocumentKey, decision: Decision, runs: Concerned) -> None:
        """Note what was decided."""
        self._documents.decided(key, decision)
        for step in decision.steps:
            concerned = runs.of(step)
            undone = self._undone.get((key, step.source, step.event)) if step.is_taking_back else None
            self.decided.append(Decided(key, step, None if concerned is None else concerned.run, undone))
            if concerned is None:
                continue
            if step.rule == LINE_FULL:
                self._held.pop((key, concerned.name), None)
            elif step.verdict == "early":
                self._held[key, concerned.name] = concerned

    def _concerned(
        self, key: DocumentKey, decision: Decision, own: Read | None
    ) -> tuple[Concerned, list[tuple[Run, Settlement]]]:
        """Find runs: the event's own, and those of events that leave the queue. Beside them those that waited and cannot be read
        any more, since their source was renamed or changed, with their ends."""
        found = Concerned()
        unreadable: list[tuple[Run, Settlement]] = []
        stored: list[Step] = []
        for step in decision.released:
            here = self._held.get((key, (step.source, step.event)))
            if here is not None:
                found.add(here)
            elif own is None or own.name != (step.source, step.event):
                stored.append(step)
        if stored:
            for run in self._transaction.held_runs(key, [step.event for step in stored]):
                if not any(step.event == run.event_id and step.source in ("", run.source) for step in stored):
                    continue
                event = self._events.read_or_end(run)
                if isinstance(event, Settlement):
                    unreadable.append((run, event))
                else:
                    found.add(Read(run, event))
        if own is not None:
            found.add(own)
        return found, unreadable

    def _leave(
        self,
        workflow: Workflow,
        key: DocumentKey,
        leaving: Sequence[tuple[Run, Settlement]],
        *,
        passed: int | None = None,
    ) -> None:
        """Take runs out of a document's queue, with these ends. That stands, whatever becomes of what let them go. `passed`: time
        did for them, up to then, and they need not wait once more."""
        for run, ended in leaving:
            self.settle(run, ended)
            self._held.pop((key, (run.source, run.event_id)), None)
            back_at = self._policy.back_at(ended)
            self._documents.leaves(workflow.table, key, run, back_at=back_at, passed=passed)

    def _put_off(
        self, workflow: Workflow, key: DocumentKey, document: Document, arrival: Arrival, run: Run
    ) -> None:
        """Put off an event of a document of which something is to be undone first."""
        since = None if key in self._leased else document.words[0].at
        self.settle(run, self._ends.later(run, UNDO_FAILED, since=since))
        self._keep_place(workflow, key, arrival, run, has_failed=False)

    def _keep_place(
        self, workflow: Workflow, key: DocumentKey, arrival: Arrival, run: Run, *, has_failed: bool = True
    ) -> None:
        """Let what stands behind an event wait for it, as it is tried again by itself; no longer if it is not."""
        back_at = self._policy.back_at(self.settled[run.id][1])
        self._documents.keeps_place(workflow.table, key, arrival, run, back_at=back_at, has_failed=has_failed)

    def _handle(
        self,
        workflow: Workflow,
        key: DocumentKey,
        decision: Decision,
        runs: Concerned,
        own: Read | None,
        said: dict[bytes, Settlement],
    ) -> Run | None:
        """Call the handlers of all moves and note the ends of their runs; returns the run that failed, if one did: then all is
        undone. Raises UndoFailed.

        `said` has, by run, what handlers said of information that they do not want: it has happened, and its number is taken.
        """
        ended: list[tuple[Run, Settlement]] = []
        current: Run | None = None
        is_information = False
        try:
            with self._transaction.savepoint():
                for step in decision.steps:
                    if step.is_taking_back:
                        self._undo(key, step)
                        continue
                    one = runs.of(step)
                    if one is None:
                        if step.is_move and step.event:
                            log.error("%s took effect, and its run is not there to be handled", step.event)
                        continue
                    current = one.run
                    is_information = step.verdict == "informational"
                    if is_information and current.id in said:
                        ended.append((current, said[current.id]))
                        continue
                    ended.append((current, self._ends.ended(self._transaction, workflow, step, one)))
        except (StoreError, UndoFailed):
            raise
        except Exception as error:
            assert current is not None
            settlement = self._policy.failed_with(current, error)
            if is_information and isinstance(error, Ignore | Refuse):
                said[current.id] = settlement
            else:
                self.settle(current, settlement)
            return current
        for run, settlement in ended:
            self.settle(run, settlement)
        return None

    def _undo(self, key: DocumentKey, step: Step) -> None:
        """Call what undoes the move of a step."""
        document = self._documents[key]
        assert document is not None
        noted = failed(document)
        run = self._transaction.moved_by(key, step.event, step.source)
        self._undone[key, step.source, step.event] = run
        self._following.undoing.hear(
            self._transaction,
            self._policy,
            self._events.read,
            run,
            step,
            wait_ms(noted),
            attempt=tries(noted),
        )
