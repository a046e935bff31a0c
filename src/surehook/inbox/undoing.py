"""Undoing what a handler did for a move that is taken back, by a function that the application has for that.

    @inbox.on_undo("surehook", "document.signed")
    def unsigned(event, tx): …  # event.change: from where to where the document goes back

An event that moved a document and is rejected afterwards (`inbox.reject`) is taken back with the document's next decision, as
the table says (core/workflow/undo.py). The functions that fit the event are called for it then, in that transaction: that the
document goes back and what they do are one commit. Of a move that stays (`not_undone`) nobody hears; people are told.

If one fails, nothing of the decision stands: the document keeps what was said of it, waits, and is looked at again. Its events
wait from the moment the event was rejected, and their attempts are not counted. That goes on for as long as it fails, an hour
apart in the end (core/workflow/undo_attempts.py), since to go on without it would leave standing what the document says has
not happened.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import structs

from surehook.core import ids
from surehook.core.errors import SurehookError
from surehook.core.workflow import undo_attempts
from surehook.core.workflow.decide import Document, Step
from surehook.inbox.event import PREFIX, Event
from surehook.inbox.handler_errors import bare, told
from surehook.inbox.handlers import Handlers
from surehook.inbox.result_policy import ResultPolicy
from surehook.inbox.safe_log import log
from surehook.inbox.sql.handler_commits import HandlerEndedIt
from surehook.ports.inbox import Settlement, StoreError, Transaction
from surehook.ports.inbox_runs import Run

UNDO_FAILED = "undo_failed"


def wait_ms(document: Document, error: Exception) -> int:
    """For how long nothing is undone after an attempt that failed so: where what it did stands, each further one does it once
    more."""
    is_kept = isinstance(error, HandlerEndedIt)
    return undo_attempts.LONGEST_WAIT_MS if is_kept else undo_attempts.wait_ms(document)


class UndoFailed(SurehookError):
    """A function has failed that was to undo the move of this run; `ended` says it, and when it is tried again."""

    def __init__(self, run: Run, ended: Settlement) -> None:
        super().__init__(f"what {ids.text(PREFIX, run.event)} did could not be undone")
        self.run, self.ended = run, ended


class Undoing:
    """The functions, and what they are called with."""

    def __init__(self, handlers: Handlers) -> None:
        self.handlers = handlers

    def hear(
        self,
        transaction: Transaction,
        ends: ResultPolicy,
        read: Callable[[Run], Event],
        run: Run | None,
        step: Step,
        wait_ms: int,
        *,
        attempt: int,
    ) -> None:
        """Call the functions that fit the event of a move that is taken back, for the `attempt`th time; `run` had made it. Raises
        UndoFailed: they are called again after `wait_ms` milliseconds."""
        if step.rule != "undone" or not self.handlers:
            return
        if run is None or run.body is None:
            log.error("%s is past its retention: what handlers did for it is not undone", step.event)
            return
        hearing = self.handlers.fitting(run.source, run.type)
        try:
            if hearing:
                ends.call(transaction, run, structs.replace(read(run), change=step), hearing)
        except StoreError:
            raise
        except Exception as error:
            ended = self.later(ends, run, error, wait_ms)
            raise UndoFailed(run, structs.replace(ended, attempts=attempt)) from error

    def later(self, ends: ResultPolicy, run: Run, error: Exception, wait_ms: int) -> Settlement:
        """Say what failed, and when it is tried again."""
        hearing = self.handlers.fitting(run.source, run.type)
        raised = bare(error)
        said = told(raised, [one.function for one in hearing])
        ended = ends.end(run, "accepted", code=UNDO_FAILED, error=said, handlers=hearing)
        # For the log: it is no attempt of the event's own, and none of its rows.
        tried = ends.history(run, ended, raised)
        return structs.replace(ended, due_at=ends.now() + wait_ms, tried=tried)
