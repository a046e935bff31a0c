"""The workflow of a document: one table, and `decide`, which says what an arriving event means.

    decision = decide(table, document, event, now=now_ms)      # document None: never heard of
    store(decision.document); journal(decision.steps)          # in the transaction that marks the event processed

Verdicts
    applied        it moved the document, a signer or a branch: handlers hear of it
    duplicate      the same event again: nothing
    stale          it comes too late to matter: recorded
    early          something before it is missing: it waits in the document, and leaves the line as `released`
    conflict       it contradicts what stands: recorded for people to look at
    informational  recorded; moves nothing; handlers that ask hear of it
    no_op          it leads to where the document already is

`decide` is a function of its arguments. Calling it with no event only lets time pass; it makes no difference whether that
is done punctually, because every call first ends the waits that are over by `now`.
"""

from __future__ import annotations

from msgspec import structs

from surehook.core.workflow.check import Flaw, WorkflowError
from surehook.core.workflow.draft import digest_of, token_digest
from surehook.core.workflow.queue import Turn
from surehook.core.workflow.table import Table
from surehook.core.workflow.table_values import SUREHOOK, Fields, Order, Parties
from surehook.core.workflow.values import (
    RULES,
    VERDICTS,
    Arrival,
    Branch,
    Decision,
    Document,
    OperatorCommand,
    Party,
    Seen,
    Step,
    Verdict,
    Waiting,
)

__all__ = [
    "RULES",
    "SUREHOOK",
    "VERDICTS",
    "Arrival",
    "Branch",
    "Decision",
    "Document",
    "Fields",
    "Flaw",
    "OperatorCommand",
    "Order",
    "Parties",
    "Party",
    "Seen",
    "Step",
    "Table",
    "Verdict",
    "Waiting",
    "WorkflowError",
    "asked",
    "decide",
    "grant",
    "granted",
    "is_undone",
    "release",
]

GRANTS_MAX = 8  # remediation tokens that a document holds at once


def decide(table: Table, document: Document | None, event: Arrival | None, now: int) -> Decision:
    """Decide what `event` means for a document that stands at `document` (None: never heard of). `now` in Unix milliseconds.

    With `event` None only time passes. Raises WorkflowError where the document stands in a state that the table lacks.
    """
    turn = Turn(table, document, now)
    turn.catch_up()
    return turn.decision(None if event is None else turn.take(event))


def release(table: Table, document: Document, now: int, *, by: str = "", why: str = "") -> Decision:
    """Let a document go on, on a person's word: behind the conflict it stands still at, or, where events wait for
    something that is missing, without it up to the first of them. Nothing happens where neither is the case."""
    turn = Turn(table, document, now)
    turn.catch_up()
    turn.release(_aimed(document, OperatorCommand(what="release", at=now, by=by, why=why)))
    return turn.decision(None)


def asked(document: Document, word: OperatorCommand) -> Document:
    """The document with a word that its next decision carries out. A second release before that is the same one."""
    if word.what == "release" and any(one.what == "release" for one in document.words):
        return document
    return structs.replace(document, words=(*document.words, _aimed(document, word)))


def _aimed(document: Document, word: OperatorCommand) -> OperatorCommand:
    """A release is up to the first event that waits when it is said: whoever said it knows of no further gap."""
    if word.what != "release" or not document.waiting:
        return word
    first = document.waiting[0].event
    return structs.replace(word, event=first.id, upto=first.sequence)


def is_undone(document: Document, event_id: str) -> bool:
    """Tell whether an event's move was taken back, or is about to be: then it may have effect once more."""
    digest = digest_of(event_id)
    return any(one.undone and one.digest == digest for one in document.seen) or any(
        word.step is not None and word.step.event == event_id for word in document.words
    )


def grant(document: Document, token: str) -> Document:
    """Allow one event that carries `token` what the rules would not: to leave a terminal state as the table's `remedies` say,
    to pass over states that were not seen, or to go on without the numbers that are missing before it. Only its digest is
    kept. Raises WorkflowError beyond 8 unused ones.
    """
    return document if not _may_grant(document, token) else _with_grant(document, token)


def granted(
    table: Table, document: Document, token: str, now: int, *, by: str, why: str
) -> tuple[Document, Step | None]:
    """As `grant`, with the step for the journal; None where the document held this token already."""
    if not _may_grant(document, token):
        return document, None
    return _with_grant(document, token), Turn(table, document, now).say_granted(by, why)


def _may_grant(document: Document, token: str) -> bool:
    if token_digest(token) in document.grants:
        return False
    if len(document.grants) >= GRANTS_MAX:
        raise WorkflowError(f"the document holds {GRANTS_MAX} unused tokens already", field="grants")
    return True


def _with_grant(document: Document, token: str) -> Document:
    return structs.replace(document, grants=(*document.grants, token_digest(token)))
