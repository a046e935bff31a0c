"""The documents of one batch of runs: what an event means is decided by the table, and handlers hear of moves.

A document is locked before it is read, so its events take effect one after the other, whichever worker has them. The decision,
the document, the journal and the handlers' effects are one commit. What comes early waits in the document, its run is `held`;
when its predecessor has come, both take effect in the same transaction, in their order.

If a handler fails for the event itself, nothing of its decision stands. If it fails for one that had waited, that one leaves
the document's queue and is tried again by its own backoff, and the event that let it go on stands. If that fails in its turn,
the other has left the queue all the same: its run is not held any more, and nothing else would hand it in.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import msgspec
from msgspec import structs

from surehook.core.workflow.decide import Arrival, Decision, Document, Step, WorkflowError, is_undone
from surehook.inbox.document_rows import document_of, step_of, without
from surehook.inbox.event import Event
from surehook.inbox.following import Following
from surehook.inbox.handlers import Handler, Ignore, Refuse
from surehook.inbox.result_policy import Called, ResultPolicy
from surehook.inbox.undoing import UNDO_FAILED, UndoFailed
from surehook.inbox.workflow import Workflow
from surehook.ports.inbox import DocumentRow, Settlement, StepRow, StoreError, Transaction
from surehook.ports.inbox_runs import DocumentKey, Run, State

log = logging.getLogger("surehook.inbox")

UNREADABLE_MS = 3_600_000  # until a document is looked at again whose table does not know its state
AGAIN_MS = 1_000  # for an event that came early to a document whose line is full
# A rule that is a code as well: these are replayed once what was missing has come.
WAITED_TOO_LONG = "waited_too_long"

# What a verdict that moves nothing makes of a run.
_ENDS: dict[str, State] = {
    "duplicate": "ignored",
    "stale": "ignored",
    "informational": "ignored",
    "no_op": "ignored",
    "conflict": "rejected",
    "early": "held",
}


class Decided(NamedTuple):
    """A decision about a document, and the run of the event that it was about, where there is one."""

    key: DocumentKey
    step: Step
    run: Run | None


class Readers(Protocol):
    """Reads the events of runs."""

    def read(self, run: Run) -> Event:
        """Read the event of a run, or raise."""
        ...

    def read_or_end(self, run: Run) -> Event | Settlement:
        """Read the event of a run, or end the run."""
        ...


class DocumentBatch:
    """The documents of one batch, in one transaction: locked at first, decided on, and kept in the end."""

    def __init__(
        self,
        transaction: Transaction,
        policy: ResultPolicy,
        following: Following,
        events: Readers,
        keys: Sequence[DocumentKey],
    ) -> None:
        self._transaction, self._policy, self._following, self._events = (
            transaction,
            policy,
            following,
            events,
        )
        self._rows = transaction.documents(keys) if keys else {}
        self._standing = {key: document_of(row.body) for key, row in self._rows.items()}
        self._wake: dict[DocumentKey, int | None] = {}
        self.decided: list[Decided] = []
        # These wait, and are not decided on in this batch.
        self.not_undone: dict[DocumentKey, UndoFailed] = {}
        # Held in this batch, so not yet in the database.
        self._held: dict[tuple[DocumentKey, str], tuple[Run, Event]] = {}
        # By run: one that was held may leave in the same batch.
        self.settled: dict[bytes, tuple[Run, Settlement]] = {}

    def arrives(self, workflow: Workflow, key: DocumentKey, arrival: Arrival, run: Run, event: Event) -> None:
        """Decide on an event, call the handlers of its moves, and note the end of every run that it concerns."""
        if run.number > 0 and not self._is_undone(key, run):
            before = self._transaction.effective_step(run.event)
            if before is not None:
                self._again(workflow, run, structs.replace(event, change=step_of(before[1])))
                return
        self._decide(workflow, key, arrival, (run, event))

    def settle(self, run: Run, settlement: Settlement) -> None:
        """Note the end of a run."""
        self.settled[run.id] = (run, settlement)

    def wake(self, workflow: Workflow, key: DocumentKey) -> None:
        """Let time pass for a document, if it still waits for that."""
        wake_at = self._rows[key].wake_at
        if wake_at is not None and wake_at <= self._policy.now() and self._standing[key] is not None:
            self._decide(workflow, key, None, None)

    def keep(self, identify: Callable[[], bytes]) -> None:
        """Write the documents that were decided on, and the journal."""
        now = self._policy.now()
        rows = []
        for key, wake_at in self._wake.items():
            document = self._standing[key]
            assert document is not None
            body = msgspec.json.encode(document).decode()
            rows.append(
                DocumentRow(key=key, body=body, state=document.state, wake_at=wake_at, updated_at=now)
            )
        self._transaction.keep_documents(rows)
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
                for key, step, run in self.decided
            ]
        )

    def _is_undone(self, key: DocumentKey, run: Run) -> bool:
        document = self._standing[key]
        return document is not None and is_undone(document, run.event_id)

    def _again(self, workflow: Workflow, run: Run, event: Event) -> None:
        """Replay an event that took effect: call its handlers with the move that it made then; the document stays."""
        assert event.change is not None
        try:
            with self._transaction.savepoint():
                ended = self._ended(workflow, event.change, run, event, again=False)
        except StoreError:
            raise
        except Exception as error:
            self.settle(run, self._policy.failed_with(run, error))
        else:
            self.settle(run, ended)

    def _decide(
        self, workflow: Workflow, key: DocumentKey, arrival: Arrival | None, own: tuple[Run, Event] | None
    ) -> None:
        document = self._standing[key]
        if (waits := self.not_undone.get(key)) is not None:
            self._put_off(waits, own)
            return
        said: dict[bytes, Settlement] = {}
        while True:  # once more for each waiting event whose handler fails: at most as often as events wait
            try:
                decision = workflow.decide(document, arrival, now=self._policy.now())
            except WorkflowError as error:  # it stands in a state that the table lacks: the table was changed
                if own is None:
                    log.error("time cannot pass for %s %s: %s", key[0], key[2], error)
                    self._wake[key] = self._policy.now() + UNREADABLE_MS
                    return
                self.settle(own[0], self._policy.failed_with(own[0], error, "workflow_error"))
                return
            runs, unreadable = self._concerned(key, decision, own)
            if unreadable:  # to wait for it would be to wait for ever
                assert document is not None
                document = self._leave(key, document, unreadable)
                continue
            try:
                failed = self._handle(workflow, key, decision, runs, own, said)
            except UndoFailed as error:
                self.not_undone[key], self._wake[key] = error, error.ended.due_at
                self._put_off(error, own)
                return
            if failed is None:
                break
            if failed.id in said:
                continue
            if own is not None and failed.id == own[0].id:
                return
            assert document is not None
            document = self._leave(key, document, [self.settled[failed.id]])
        self._standing[key] = decision.document
        self._wake[key] = decision.wake_at
        for step in decision.steps:
            concerned = runs.get(step.event)
            self.decided.append(Decided(key, step, None if concerned is None else concerned[0]))
            if concerned is not None and step.verdict == "early" and not decision.again:
                self._held[key, step.event] = concerned

    def _concerned(
        self, key: DocumentKey, decision: Decision, own: tuple[Run, Event] | None
    ) -> tuple[dict[str, tuple[Run, Event]], list[tuple[Run, Settlement]]]:
        """Find runs by event id: the event's own, and those of events that leave the queue. Beside them those that waited and
        cannot be read any more, since their source was renamed or changed, with their ends."""
        leaving = [step.event for step in decision.released]
        found = {one: self._held[key, one] for one in leaving if (key, one) in self._held}
        unreadable: list[tuple[Run, Settlement]] = []
        if stored := [one for one in leaving if one not in found]:
            for run in self._transaction.held_runs(key, stored):
                event = self._events.read_or_end(run)
                if isinstance(event, Settlement):
                    unreadable.append((run, event))
                else:
                    found[run.event_id] = (run, event)
        if own is not None:
            found[own[0].event_id] = own
        return found, unreadable

    def _leave(
        self, key: DocumentKey, document: Document, leaving: Sequence[tuple[Run, Settlement]]
    ) -> Document:
        """Take runs out of a document's queue, with these ends. That stands, whatever becomes of what let them go."""
        for run, ended in leaving:
            self.settle(run, ended)
            document = without(document, run.event_id)
        self._standing[key] = document
        self._wake.setdefault(key, self._rows[key].wake_at)
        return document

    def _put_off(self, error: UndoFailed, own: tuple[Run, Event] | None) -> None:
        """Put off an event of a document that waits until something is undone."""
        if own is None:
            return
        run = own[0]
        later = self._policy.end(run, "accepted", code=UNDO_FAILED, error=str(error))
        self.settle(run, structs.replace(later, due_at=error.ended.due_at, attempts=max(run.attempts - 1, 0)))

    def _handle(
        self,
        workflow: Workflow,
        key: DocumentKey,
        decision: Decision,
        runs: dict[str, tuple[Run, Event]],
        own: tuple[Run, Event] | None,
        said: dict[bytes, Settlement],
    ) -> Run | None:
        """Call the handlers of all moves and note the ends of their runs; returns the run that failed, if one did: then all is
        undone. Raises UndoFailed.

        `said` has, by run, what handlers said of information that they do not want: it has happened, and its number is taken.
        """
        undoing = self._following.undoing
        ended: list[tuple[Run, Settlement]] = []
        current: Run | None = None
        is_information = False
        try:
            with self._transaction.savepoint():
                for step in decision.steps:
                    if step.is_taking_back:
                        undoing.hear(
                            self._transaction,
                            self._policy,
                            self._events.read,
                            key,
                            step,
                            self._said_at(key, step),
                        )
                        continue
                    if step.event not in runs:
                        if step.is_move and step.event:
                            log.error("%s took effect, and its run is not there to be handled", step.event)
                        continue
                    current, event = runs[step.event]
                    is_information = step.verdict == "informational"
                    if is_information and current.id in said:
                        ended.append((current, said[current.id]))
                        continue
                    again = decision.again and own is not None
                    ended.append((current, self._ended(workflow, step, current, event, again=again)))
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

    def _said_at(self, key: DocumentKey, step: Step) -> int:
        """The instant of the command that this step carries out."""
        document = self._standing[key]
        words = () if document is None else document.words
        return next((one.at for one in words if one.step and one.step.event == step.event), step.at)

    def _ended(self, workflow: Workflow, step: Step, run: Run, event: Event, *, again: bool) -> Settlement:
        ends = self._policy
        hearing = self._hearing(workflow, step, run)
        if step.is_move or hearing:
            called: Called = ends.call(self._transaction, run, structs.replace(event, change=step), hearing)
            return ends.succeeded(run, called)
        if step.verdict == "early" and again:
            later = ends.end(run, "accepted", code="line_full", error=step.reason)
            return structs.replace(later, due_at=ends.now() + AGAIN_MS, attempts=max(run.attempts - 1, 0))
        code = step.rule if step.rule == WAITED_TOO_LONG else step.verdict
        return ends.end(run, _ENDS[step.verdict], code=code, error=step.reason)

    def _hearing(self, workflow: Workflow, step: Step, run: Run) -> tuple[Handler, ...]:
        """Choose the handlers that hear of a step."""
        if not step.is_move and step.verdict != "informational":
            return ()
        fitting = self._policy.handlers.fitting(run.source, run.type)
        return fitting if step.is_move else self._following.asking(workflow, run, fitting)
