"""Results of batches: what became of their runs, and what is known of a batch whose transaction failed."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from surehook.inbox.document_runs import Decided
from surehook.ports.inbox import Settlement
from surehook.ports.inbox_runs import DocumentKey, Run


class BatchResult(Struct):
    """The outcome of a batch.

    settlements  the end of each run
    changed      runs that gave another result than the event gave before
    lost         runs that another worker had taken
    left         how many were given back, for others to take
    decided      every decision about a document
    released     ids of runs that had been held before this batch
    at           when this was, Unix milliseconds
    not_undone   runs whose move could not be undone, for the documents that wait for that; and when it is tried again
    to_undo      a document was left of which something is to be undone
    put_off      ids of runs whose document another worker has, with that
    carried      such runs that are still of this claim, for its next batch
    has_changed_session  a handler has set something, with which the batch ends: so may the next one's
    """

    settlements: list[tuple[Run, Settlement]]
    changed: list[Run]
    lost: int = 0
    left: int = 0
    decided: Sequence[Decided] = ()
    released: frozenset[bytes] = frozenset()
    at: int = 0
    not_undone: Sequence[tuple[Run, Settlement]] = ()
    to_undo: bool = False
    put_off: Sequence[tuple[DocumentKey, bytes]] = ()
    carried: Sequence[tuple[DocumentKey, Run]] = ()
    has_changed_session: bool = False

    @property
    def is_all(self) -> bool:
        """True where nothing that was claimed for the batch is still to be handled, here or elsewhere."""
        return not (self.lost or self.left or self.put_off or self.carried)


class BatchAttempt(Struct):
    """The facts about a transaction that failed.

    is_begun   a run was begun in it: then the failure may be that run's
    is_shared  handlers were called in it for events that had waited: then it may be theirs
    """

    is_begun: bool = False
    is_shared: bool = False
