"""Runs, their states, and what selects them: the values that every part of `ports.inbox.Transaction` names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

State = Literal["accepted", "held", "parked", "processed", "finalized", "rejected", "ignored", "dead"]
OPEN: tuple[State, ...] = ("accepted", "held")  # to be processed, now or later
# accepted   stored; waits for a worker, at first or again
# held       came before its predecessor, which it waits for
# parked     stored and answered, and cannot be processed yet: no handler, no such source, an unknown schema version
# processed  its effects are committed; `finalize` or `reject` is still to be called
# finalized  its effects are committed and stand
# rejected   refused after processing, or by a handler for good; may be replayed
# ignored    nothing to do, and recorded as that
# dead       all attempts failed; may be replayed

DocumentKey = tuple[str, str, str]  # document type, tenant, document id


class Run(Struct, gc=False):
    """One claimed processing of an event, with all that a handler may want to know. `due_at`: as it was claimed."""

    id: bytes
    event: bytes
    number: int
    attempts: int
    error_code: str | None  # how the last attempt ended, or why it waited
    source: str
    tenant: str
    event_id: str
    type: str | None
    item: int | None
    received_at: int
    occurred_at: int | None
    proven: str
    schema_version: str | None
    correlation_id: str | None
    url: str | None
    headers: str | None
    body: bytes | None  # None: its retention has ended
    due_at: int = 0


def due_since(runs: Sequence[Run]) -> int:
    """The instant at which the first of them was due as it was claimed."""
    return min((run.due_at for run in runs), default=0)


class Filter(Struct, frozen=True, kw_only=True):
    """Selects events; a field that is None selects all. Times are Unix milliseconds of arrival, `until` exclusive."""

    event: bytes | None = None
    source: str | None = None
    tenant: str | None = None
    event_id: str | None = None
    correlation_id: str | None = None
    type: str | None = None  # exact, or `document.*`
    document: str | None = None
    state: State | None = None  # of the newest run
    error_code: str | None = None
    since: int | None = None
    until: int | None = None
