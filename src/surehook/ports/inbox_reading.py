"""Questions about events and about waiting: the part of `ports.inbox.Transaction` that only reads, within stated bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from surehook.ports.inbox_runs import DocumentKey, Filter, Run


class Other(Struct, frozen=True, kw_only=True):
    """Another body that came under the id of a stored event; `body` None: its retention has ended."""

    received_at: int
    body_sha256: bytes
    body: bytes | None


class OldestDue(Struct, frozen=True, kw_only=True):
    """The run that has been due longest, with its source; `due_at` in Unix milliseconds."""

    run: bytes
    source: str
    due_at: int


class ReadingTransaction(Protocol):
    """Inside one open transaction."""

    def others(self, event: bytes) -> Sequence[Other]:
        """The other bodies of an event, oldest first: as many as are kept, which is few."""
        ...

    def reach(self, wanted: Filter, *, looks: int) -> int | None:
        """Arrival of the last of `looks` matching events, newest first; None where there are fewer."""
        ...

    def oldest_due(self, *, now: int) -> OldestDue | None:
        """None: nothing is due. Workers take the oldest first, so one that stays the oldest is taken by nobody."""
        ...

    def moved_by(self, key: DocumentKey, event_id: str, source: str) -> Run | None:
        """The newest run by which this event of this source ("": any) moved the document; None: its retention has ended."""
        ...
