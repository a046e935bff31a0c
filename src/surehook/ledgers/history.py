"""Where a line of history stands within its delivery: `seq`, so that no write needs to read first.

    attempt        64 × number + 63
    ended          64 × number + 62
    interrupted    64 × number + times freed before, at most 61 (later ones of one attempt overwrite the last)

Numbers are never used twice within a delivery, so lines sort in the order they happened, and number and
kind need no columns of their own.
"""

from __future__ import annotations

from surehook.core.model import Attempt, AttemptKind, Delivery

PLACES = 64
ATTEMPT, ENDED, LAST_INTERRUPTION = 63, 62, 61


def kind(seq: int) -> AttemptKind:
    """What sort of line stands at `seq`."""
    place = seq % PLACES
    return "attempt" if place == ATTEMPT else "ended" if place == ENDED else "interrupted"


def number(seq: int) -> int:
    """The number of the attempt in hand when the line at `seq` was written."""
    return seq // PLACES


def made(seq: int) -> int:
    """Requests recorded up to and including the line at `seq`."""
    return seq // PLACES - (seq % PLACES != ATTEMPT)


def place(entry: Attempt, delivery: Delivery) -> int:
    """`seq` of a new line about a delivery as it is in hand."""
    if entry.kind == "attempt":
        return delivery.attempt * PLACES + ATTEMPT
    if entry.kind == "ended":
        return delivery.attempt * PLACES + ENDED
    return delivery.attempt * PLACES + min(delivery.freed, LAST_INTERRUPTION)
