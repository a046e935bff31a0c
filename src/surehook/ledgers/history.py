"""The position of a history row within its delivery, `seq`, computed so that no write needs to read first.

    attempt        64 × number + 63
    ended          64 × number + 62
    interrupted    64 × number + times freed before, at most 61 (later ones of one attempt overwrite the last)

Numbers are never used twice within a delivery, so rows sort in the order of their events, and number and kind need no columns
of their own.
"""

from __future__ import annotations

from surehook.core.model import Attempt, AttemptKind, Delivery

PLACES = 64
ATTEMPT, ENDED, LAST_INTERRUPTION = 63, 62, 61


def kind(seq: int) -> AttemptKind:
    """Return the kind of the row at `seq`."""
    place = seq % PLACES
    return "attempt" if place == ATTEMPT else "ended" if place == ENDED else "interrupted"


def number(seq: int) -> int:
    """Return the number of the attempt during which the row at `seq` was written."""
    return seq // PLACES


def made(seq: int) -> int:
    """Count the requests recorded up to and including the row at `seq`."""
    return seq // PLACES - (seq % PLACES != ATTEMPT)


def place(entry: Attempt, delivery: Delivery) -> int:
    """Return `seq` of a new row about a delivery as its holder has it."""
    if entry.kind == "attempt":
        return delivery.attempt * PLACES + ATTEMPT
    if entry.kind == "ended":
        return delivery.attempt * PLACES + ENDED
    return delivery.attempt * PLACES + min(delivery.freed, LAST_INTERRUPTION)
