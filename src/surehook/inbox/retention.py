"""Retention: workers remove what is past it, some rows at a time, when there is nothing else to do.

An event that is still open is never removed, however old it is. A walk goes through all that is old, a part of it in each
transaction, which has no other work: a claim never waits for it. Workers of one process take turns, those of several each
take rows that no other has (`Transaction.prune`), so nothing is done twice.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from surehook.core import instants
from surehook.core.errors import SettingsError
from surehook.inbox.rules import check_kind
from surehook.inbox.safe_log import log
from surehook.ports.inbox import Transaction
from surehook.ports.inbox_pruning import FROM_THE_START

ROWS = 500  # of each kind in one transaction: some tens of milliseconds
STEP_MS = 1_000  # until the next part of a walk
PASS_MS = 60_000  # until the next walk
STATEMENT_S = 5.0  # for one statement: a thousand times what it takes
DAYS_MOST = 1_000_000  # that a retention may have: beyond, no database has such an instant
LATE_MS = 600_000  # a worker that always has something to do prunes all the same


class Keep(Struct, frozen=True):
    """The retention of finished events. Raises SettingsError.

    bodies_days  bodies and headers
    events_days  dedupe records with their runs and tries: longer than any sender repeats
    """

    bodies_days: float = 30.0
    events_days: float = 90.0

    def __post_init__(self) -> None:
        if not self.bodies_days > 0:
            raise SettingsError("bodies_days", f"more than 0 days, and not {self.bodies_days:g}")
        if not self.bodies_days <= self.events_days:
            raise SettingsError(
                "events_days",
                f"{self.events_days:g} days are less than {self.bodies_days:g}: dedupe records must outlive bodies",
            )
        if self.events_days > DAYS_MOST:
            raise SettingsError(
                "events_days",
                f"at most {DAYS_MOST:,} days",
                hint="what is to stay for ever is not pruned: `keep=None`",
            )

    def before(self, now: int) -> tuple[int, int]:
        """Return the instants before which bodies and dedupe records are past their retention; Unix milliseconds."""
        return now - round(self.bodies_days * instants.DAY_MS), now - round(
            self.events_days * instants.DAY_MS
        )


class Pruner:
    """Decides when workers prune. `now` gives Unix milliseconds."""

    def __init__(self, keep: Keep | None, now: Callable[[], int]) -> None:
        self._keep = keep
        self._now = now
        self._due_at = now()
        self._place = FROM_THE_START

    def is_due(self, *, idle: bool) -> bool:
        """Tell whether it is time for a step."""
        if self._keep is None:
            return False
        late_ms = self._now() - self._due_at
        return late_ms < -PASS_MS or late_ms >= (0 if idle else LATE_MS)  # the clock may have been set back

    def step(self, transaction: Transaction) -> None:
        """Remove some of what is past its retention."""
        now = self._now()
        self._due_at = now + PASS_MS  # also where this fails, and for the other workers of this process
        if self._keep is None:
            return
        bodies, events = self._keep.before(now)
        part = transaction.prune(
            bodies_before=bodies, events_before=events, limit=ROWS, place=self._place, within_s=STATEMENT_S
        )
        if part.removed.requests or part.removed.events:
            log.info(
                "past their retention, and removed: %d bodies, %d dedupe records",
                part.removed.requests,
                part.removed.events,
            )
        self._place = FROM_THE_START if part.place.is_end else part.place
        if not part.place.is_end:
            self._due_at = now + STEP_MS


def checked_keep(keep: Keep | None) -> Keep | None:
    """Check the retention of an inbox. Raises SettingsError."""
    check_kind("keep", keep, Keep, hint="keep=Keep(bodies_days=30)")
    return keep
