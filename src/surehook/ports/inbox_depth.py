"""The number of runs that wait, by source."""

from __future__ import annotations

from msgspec import Struct


class Depth(Struct, frozen=True, kw_only=True):
    """Number of runs of a source that wait, counted up to a bound, so that asking costs the same whatever the backlog.

    ready          due now
    scheduled      due later: in a worker's hands, or put off
    held           for a predecessor; parked: for a schema version; dead: for a person
    oldest_due_at  since when the oldest one is due that nobody took, Unix milliseconds; None: nothing is
    """

    source: str
    ready: int = 0
    scheduled: int = 0
    held: int = 0
    parked: int = 0
    dead: int = 0
    oldest_due_at: int | None = None
