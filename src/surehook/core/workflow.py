"""The workflow of a document: one table, and `decide`, which says what an arriving event means.

    decision = decide(table, document, event, now=now_ms)      # document None: never heard of
    store(decision.document); journal(decision.steps)          # in the transaction that marks the event processed

Verdicts
    applied        it moved the document, a signer or a branch: the only verdict that handlers hear of
    duplicate      the same event again: nothing
    stale          it comes too late to matter: recorded
    early          something before it is missing: it waits in the document, and leaves the line as `released`
    conflict       it contradicts what stands: recorded for people to look at
    informational  recorded; moves nothing
    no_op          it leads to where the document already is

`decide` is a function of its arguments. Calling it with no event only lets time pass; it makes no difference whether that
is done punctually, because every call first ends the waits that are over by `now`.
"""

from __future__ import annotations

from msgspec import structs

from surehook.core.workflow_check import Flaw, WorkflowError
from surehook.core.workflow_draft import token_digest
from surehook.core.workflow_table import SUREHOOK, Fields, Order, Parties, Table
from surehook.core.workflow_turn import Turn
from surehook.core.workflow_values import (
    RULES,
    VERDICTS,
    Arrival,
    Branch,
    Decision,
    Document,
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
    "Order",
    "Parties",
    "Party",
    "Seen",
    "Step",
    "Table",
    "Verdict",
    "Waiting",
    "WorkflowError",
    "decide",
    "grant",
    "release",
]

GRANTS_MAX = 8  # remediation tokens that a document holds at once


def decide(table: Table, document: Document | None, event: Arrival | None, now: int) -> Decision:
    """What `event` means for a document that stands at `document` (None: never heard of). `now` in Unix milliseconds.

    With `event` None only time passes. Raises WorkflowError where the document stands in a state that the table lacks.
    """
    turn = Turn(table, document, now)
    turn.lapse()
    return turn.decision(None if event is None else turn.take(event))


def release(table: Table, document: Document, now: int) -> Decision:
    """Let a document go on, on an operator's word: behind the conflict it stands still at, or, where events wait for
    something that is missing, without it up to the first of them. Nothing happens where neither is the case."""
    turn = Turn(table, document, now)
    turn.lapse()
    turn.release()
    return turn.decision(None)


def grant(document: Document, token: str) -> Document:
    """Allow one event that carries `token` to leave a terminal state as the table's `remedies` say. Only its digest is kept.

    Raises WorkflowError beyond 8 unused ones.
    """
    digest = token_digest(token)
    if digest in document.grants:
        return document
    if len(document.grants) >= GRANTS_MAX:
        raise WorkflowError(f"the document holds {GRANTS_MAX} unused tokens already", field="grants")
    return structs.replace(document, grants=(*document.grants, digest))
