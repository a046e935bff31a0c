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
is done punctually, because every call first ends the waits that are over by `now` (unless it is told otherwise).
"""

from __future__ import annotations

from msgspec import structs

from surehook.core.workflow.bounds import fitting, kept_in_mind
from surehook.core.workflow.check import Flaw, WorkflowError
from surehook.core.workflow.draft import find_seen, token_digest
from surehook.core.workflow.queue import Turn, lets_go
from surehook.core.workflow.table import Table
from surehook.core.workflow.table_values import SUREHOOK, Fields, Order, Parties
from surehook.core.workflow.undo_attempts import undoes
from surehook.core.workflow.values import (
    RULES,
    VERDICTS,
    Arrival,
    Branch,
    Decision,
    Document,
    OperatorCommand,
    Party,
    Retried,
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
    "Retried",
    "Seen",
    "Step",
    "Table",
    "Verdict",
    "Waiting",
    "WorkflowError",
    "asked",
    "decide",
    "due_at",
    "fitting",
    "grant",
    "granted",
    "is_undone",
    "leave",
    "may_come_first",
    "put_off",
    "release",
    "wake_at",
]

GRANTS_MAX = 8  # remediation tokens that a document holds at once
COMMANDS_MAX = 100  # that no decision has carried out yet


def decide(
    table: Table,
    document: Document | None,
    event: Arrival | None,
    now: int,
    *,
    passes: bool = True,
    until: int | None = None,
) -> Decision:
    """Decide what `event` means for a document that stands at `document` (None: never heard of). `now` in Unix milliseconds.

    With `event` None only time passes. With `passes=False` no time does: no wait ends, and no command is carried out. So calls
    whoever may have other events still to hand in that came in time, and lets time pass by a call of its own. `until`: the waits
    that are over by then end, and no later ones; None: by `now`. So calls whoever may have events that came in time for those.

    Raises WorkflowError where the document, or a signer, stands in a state that the table lacks.
    """
    turn = Turn(table, document, now)
    if passes:
        turn.catch_up(until)
    return turn.decision(None if event is None else turn.take(event))


def wake_at(table: Table, document: Document) -> int | None:
    """The instant (Unix milliseconds) at which a call of `decide` with no event is due; None: time changes nothing."""
    return Turn(table, document, 0).wake_at()


def due_at(table: Table, document: Document) -> int | None:
    """When, Unix milliseconds, a document should go on whose state the table lacks, so that it decides nothing; None: never."""
    words = [one.at for one in document.words]
    wait_s = None if document.stopped is not None else table.order.wait_s
    ends = () if wait_s is None else (one.since + round(wait_s * 1000) for one in document.waiting)
    return min((*words, *ends), default=None)


def release(table: Table, document: Document, now: int, *, by: str = "", why: str = "") -> Decision:
    """Let a document go on, on a person's word: behind the conflict it stands still at, or, where events wait for
    something that is missing, without it up to the first of them. Nothing happens where neither is the case."""
    turn = Turn(table, document, now)
    turn.catch_up()
    turn.release(_aimed(document, OperatorCommand(what="release", at=now, by=by, why=why)))
    return turn.decision(None)


def asked(document: Document, word: OperatorCommand) -> Document:
    """The document with a word that its next decision carries out. A second release before that is the same one. Raises
    WorkflowError beyond 100 that wait for that."""
    if word.what == "release" and any(one.what == "release" for one in document.words):
        return document
    if len(document.words) >= COMMANDS_MAX:
        raise WorkflowError(
            f"{COMMANDS_MAX} commands wait for a worker already: say it again then", field="words"
        )
    return structs.replace(document, words=(*document.words, _aimed(document, word)))


def _aimed(document: Document, word: OperatorCommand) -> OperatorCommand:
    """A release is up to the first event that waits when it is said: whoever said it knows of no further gap."""
    if word.what != "release" or not document.waiting:
        return word
    first = document.waiting[0].event
    return structs.replace(word, event=first.id, source=first.source, upto=first.sequence)


def leave(
    table: Table,
    document: Document,
    event_id: str,
    source: str,
    now: int,
    *,
    back_at: int | None,
    passed: int | None = None,
) -> Document:
    """Take an event out of the document's queue whose effect could not be made.

    back_at   it is handed in again by itself, by that instant at the latest: what stands behind it waits for it, and after that
              for as long as the table's `wait_s` says; at most twice `count` events are waited for so. None: it does not
              come back
    passed    as time passed, up to that instant, its turn had come: it need not wait once more
    """
    gone = Arrival(id=event_id, type="", source=source)
    waited = next((one for one in document.waiting if one.event.is_same(gone)), None)
    known = next((one for one in document.retried if one.event.is_same(gone)), None)
    if waited is not None:
        said_at = 0 if passed is None else _said_at(document, waited.event)
        known = Retried(
            waited.event, waited.since, now, now, passed is not None, passed=passed or 0, said_at=said_at
        )
    left = structs.replace(
        document,
        waiting=tuple(one for one in document.waiting if one is not waited),
        retried=tuple(one for one in document.retried if not one.event.is_same(gone)),
    )
    if known is None or back_at is None:
        return left
    return _with_retried(table, left, structs.replace(known, back_at=back_at))


def _said_at(document: Document, event: Arrival) -> int:
    """When an operator let an event go on that leaves as this is carried out; 0 if nobody did."""
    return max((word.at for word in document.words if lets_go(word, event)), default=0)


def put_off(
    table: Table,
    document: Document | None,
    event: Arrival,
    now: int,
    *,
    back_at: int | None,
    has_failed: bool = True,
) -> Document:
    """Keep in mind an event that came and is handed in again later, as its own effect could not be made or something else comes
    first (`has_failed` False): what stands behind it waits for it as if it had left the queue. `back_at` as in `leave`."""
    document = Turn(table, document, now).decision(None).document if document is None else document
    known = next((one for one in document.retried if one.event.is_same(event)), None)
    if known is None and (back_at is None or not Turn(table, document, now).is_waited_for(event)):
        return document
    others = tuple(one for one in document.retried if one is not known)
    left = structs.replace(document, retried=others)
    if back_at is None:
        return left
    known = known or Retried(event, now, now, back_at)
    found = structs.replace(known, back_at=back_at, line_full=known.line_full and not has_failed)
    return _with_retried(table, left, found)


def may_come_first(table: Table, document: Document, event: Arrival, now: int) -> bool:
    """Tell whether an event that is not in the document may have its turn before one that waits there: a wait that ends sooner
    would give it up."""
    return Turn(table, document, now).may_come_first(event)


def _with_retried(table: Table, document: Document, one: Retried) -> Document:
    return structs.replace(document, retried=tuple(kept_in_mind(table.order, document.retried, one)))


def is_undone(document: Document, event_id: str, source: str = "") -> bool:
    """Tell whether an event's move was taken back, or is about to be: then it may have effect once more."""
    gone = Arrival(id=event_id, type="", source=source)
    seen = find_seen({one.digest: one for one in document.seen}, event_id, source)
    return (seen is not None and seen.undone) or any(undoes(word, gone) for word in document.words)


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
