"""Attempts to undo a move: what is to be undone, how often that has been tried, and from when it may be tried again.

What undoes something may end its process, so that nobody learns how an attempt went. An attempt is therefore noted before it
begins (`begun`), and its failure afterwards (`failed`). Waits follow from the number of attempts: 1 s after the first, twice as
long after each further one, at most an hour; from 10 s on while nothing is known of the last one, which costs a process or a
thread. They do not follow from the time that has passed: a clock that was set would be taken for hours of failing.
"""

from __future__ import annotations

from msgspec import structs

from surehook.core.workflow.values import Arrival, Document, OperatorCommand

FIRST_WAIT_MS, LONGEST_WAIT_MS = 1_000, 3_600_000
FIRST_WITHOUT_OUTCOME_MS = 10_000
DOUBLINGS = 12  # no further ones: the longest wait is reached by then


def is_to_be_undone(document: Document) -> bool:
    """Tell whether a move is about to be taken back: that comes before anything else."""
    return any(word.what == "undo" for word in document.words)


def undoes(word: OperatorCommand, event: Arrival) -> bool:
    """Tell whether a command takes back the move of this event."""
    step = word.step
    return step is not None and event.is_same(Arrival(id=step.event, type="", source=step.source))


def begun(document: Document, now: int) -> Document:
    """Note that an attempt begins at `now`, Unix milliseconds."""
    return _noted(document, tries(document) + 1, now)


def failed(document: Document) -> Document:
    """Note that an attempt has failed, whether or not it was noted when it began."""
    count = tries(document)
    return _noted(document, count if without_outcome(document) is not None else count + 1, None)


def without_outcome(document: Document) -> int | None:
    """Return when the last attempt began, Unix milliseconds, if nothing is known of how it went."""
    return max((one.tried_at for one in document.words if one.tried_at is not None), default=None)


def wait_ms(document: Document) -> int:
    """Return for how many milliseconds nothing is tried after the last attempt."""
    first = FIRST_WAIT_MS if without_outcome(document) is None else FIRST_WITHOUT_OUTCOME_MS
    return min(first * (1 << min(max(tries(document) - 1, 0), DOUBLINGS)), LONGEST_WAIT_MS)


def may_try_at(document: Document, now: int) -> int:
    """Return from when something may be tried, Unix milliseconds: while the outcome of the last attempt is unknown, after its
    wait. One that began later than now was noted by another clock: the wait then begins now."""
    begun_at = without_outcome(document)
    return now if begun_at is None else min(begun_at, now) + wait_ms(document)


def tries(document: Document) -> int:
    """Count the attempts that have begun."""
    return max((one.tries for one in document.words), default=0)


def _noted(document: Document, count: int, at: int | None) -> Document:
    words = tuple(
        structs.replace(one, tries=count, tried_at=at) if one.what == "undo" else one
        for one in document.words
    )
    return structs.replace(document, words=words)
