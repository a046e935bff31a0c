"""Documents for which time passes, a part of `ports.inbox.Transaction`. Instants are Unix milliseconds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from surehook.ports.inbox_runs import DocumentKey, Run


class DueDocuments(Struct, frozen=True):
    """Documents for which time has passed, and what may have to come before that.

    instants  when it passed for each
    tried     runs, by id, and when they came: others have them, or gave them back just now, and they failed before, or their
              documents had no room. Each may be of any document
    """

    instants: Mapping[DocumentKey, int]
    tried: Mapping[bytes, int]


class WakingTransaction(Protocol):
    """Inside one open transaction."""

    def due_documents(
        self, *, types: Sequence[str], now: int, lease_ms: int, token: bytes, limit: int
    ) -> DueDocuments:
        """Lock documents of these types whose `wake_at` has passed.

        None for which a run may matter that came before its instant: one that is due, one that another token has and that was
        never tried, or one that a process had that has ended."""
        ...

    def lease_documents(self, keys: Collection[DocumentKey], *, until: int) -> None:
        """Lease locked documents: they wake at the lease's end, so one that cannot go on is not tried at once, and others are."""
        ...

    def wake_again(self, instants: Mapping[DocumentKey, int], *, leased_until: int) -> None:
        """Give back documents that are still leased until then, to wake at the instants at which they did, but for those that
        others have locked: their leases lapse."""
        ...

    def wake(self, keys: Sequence[DocumentKey], *, now: int) -> None:
        """Let documents wake, but for those that others have locked."""
        ...

    def unfollowed(self, types: Sequence[str], *, before: int, limit: int) -> list[tuple[str, str]]:
        """Of each other type the document for which time passed first, if before that instant: types and ids, at most so many."""
        ...

    def runs(self, ids: Sequence[bytes]) -> list[Run]:
        """Runs, not locked: those that there are."""
        ...
