"""Log lines about documents that wait: waits that are over, numbers that were given up, queues that are full, moves that
could not be taken back, and numbers that the sender gave to events which no workflow here follows.

Bounded: ten lines a second for what happened, one a minute for each document whose queue is full, for each type of documents
whose table is another than theirs, and for each type whose events are not counted.
"""

from __future__ import annotations

from collections.abc import Callable

from surehook.core import ids, instants
from surehook.core.workflow.decide import WorkflowError
from surehook.inbox.document_runs import Decided
from surehook.inbox.event import PREFIX
from surehook.inbox.log_limits import LinesPerSecond, OncePer
from surehook.inbox.quoting import quoted
from surehook.inbox.safe_log import log
from surehook.ports.inbox import Transaction
from surehook.ports.inbox_runs import DocumentKey, Run

LINES_S = 10
TELL_S = 60.0

# By rule: what to do about it.
LOUD = {
    "waited_too_long": "the event is rejected; replay it when what is missing has come",
    "gave_up": "what is missing will be stale when it comes",
    "line_full": "it is tried again until there is room: a number is missing, or let the document go on (release)",
    "jump": "the sender's numbers are wrong, or began elsewhere",
    "not_undone": "the document stays as it is; a person has to look at it",
}


class Gaps:
    """`boot` counts seconds."""

    def __init__(self, boot: Callable[[], float]) -> None:
        self._lines = LinesPerSecond(boot, LINES_S)
        self._full = OncePer(boot, TELL_S)
        self._undecided = OncePer(boot, TELL_S)
        self._uncounted = OncePer(boot, TELL_S)

    def report(self, one: Decided) -> None:
        """Log one committed decision, if its document waits."""
        rule = one.step.rule
        if rule not in LOUD or (rule == "line_full" and not self._full.may(one.key)):
            return
        if (left_out := self._lines.may()) is None:
            return
        (document_type, tenant, document), step = one.key, one.step
        log.warning(
            "%s %s%s: %s%s [%s]; %s%s",
            document_type,
            quoted(document),
            f" of {quoted(tenant)}" if tenant else "",
            f"{quoted(step.event)} " if step.event else "",
            step.reason,
            step.rule,
            LOUD[step.rule],
            f" ({left_out} lines before this one were not written)" if left_out else "",
        )

    def undecided(self, key: DocumentKey, again_at: int, error: WorkflowError) -> None:
        """Log that a document should go on, and that the table here lacks its state."""
        if self._undecided.may(key[0]):
            log.error(
                "%s %s cannot go on, and is put off until %s: %s",
                key[0], quoted(key[2]), instants.render(again_at), "; ".join(filter(None, (error.detail, error.hint))),
            )  # fmt: skip

    def uncounted(self, transaction: Transaction, run: Run, key: DocumentKey, number: int) -> None:
        """Log that an event which no workflow follows has a document's number, for which the document will wait."""
        if not self._uncounted.may((run.source, run.type)):
            return
        document_type, tenant, document = key
        if not transaction.history(document, document_type=document_type, tenant=tenant):
            return
        log.warning(
            "no workflow follows %s of %s, and %s has number %d of %s %s, which will wait for it: follow the type too, or "
            "name it `informational` in the table",
            run.type or "an event without a type",
            run.source,
            ids.text(PREFIX, run.event),
            number,
            document_type,
            quoted(document),
        )
