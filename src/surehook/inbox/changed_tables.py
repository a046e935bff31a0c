"""Documents in which events wait by the decision of another table than that of today: each is looked at anew.

A document wakes at the instant that its last decision said. If its table was changed since, its events may have their turn by
now, or wait for less long, or not for ever any more. So who begins to work looks through all that is held, some rows at a time,
and again each hour: during a deployment a process of the version before may decide once more.
"""

from __future__ import annotations

from collections.abc import Callable

from surehook.inbox.document_rows import step_of
from surehook.inbox.following import Following
from surehook.ports.inbox import Transaction

ROWS = 500  # looked at in one transaction: some milliseconds
STEP_MS = 1_000  # between two steps of one pass over all that is held
PASS_MS = 3_600_000  # between the end of a pass and the next


class ChangedTables:
    """Wakes documents whose table was changed. `now` gives Unix milliseconds."""

    def __init__(self, following: Following, now: Callable[[], int]) -> None:
        self._following, self._now = following, now
        self._after = b""
        self._looks_at = -PASS_MS

    @property
    def is_due(self) -> bool:
        """True if it is time to look."""
        return bool(self._following.workflows) and not 0 < self._looks_at - self._now() <= PASS_MS

    def look(self, transaction: Transaction) -> None:
        """Wake some documents, and go on behind them the next time."""
        now = self._now()
        self._looks_at = now + PASS_MS  # also where this fails
        found = transaction.held_after(self._after, limit=ROWS)
        labels = {one.document_type: one.table.label for one in self._following.workflows}
        keys = {
            held.key
            for held in found
            if held.key is not None
            and held.step is not None
            and labels.get(held.key[0], step_of(held.step).table) != step_of(held.step).table
        }
        if keys:
            transaction.wake(sorted(keys), now=now)
        is_all = len(found) < ROWS
        self._after = b"" if is_all else found[-1].run
        if not is_all:
            self._looks_at = now + STEP_MS
