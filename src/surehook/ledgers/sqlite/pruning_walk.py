"""A walk of retention in the order of rows: through new rows, and a few of those that were kept.

Old rows that are still needed (dead letters, events of unfinished deliveries) stay, and must not cost anything afterwards.
So a walk has a mark: everything up to it was looked at, and the rows left there were kept. Each round goes on from the mark
through all rows that are old by now, and through a bounded piece of the rows before it, since some may no longer be needed.
A million kept rows are looked through once in three days, at a few milliseconds per minute.

Looks that find nothing to remove write nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from surehook.ledgers.sqlite.session import SqliteSession

# Rows that one step looks at: a millisecond or two.
STEP_ROWS = 250
# Kept rows that one round looks at without removing any.
KEPT_ROWS = 250
# Rows after the mark that one round looks at without removing any. After a start all kept rows lie there.
VAIN_ROWS = 20_000


class WalkedRow(NamedTuple):
    """A row that was looked at. `fate` is old (to be removed), kept, young, or open (of no concern to this walk)."""

    place: object
    key: bytes
    fate: str


# Looks at rows after a place, up to another one; the last argument is the instant before which rows are old.
Look = Callable[[SqliteSession, Any, Any, int], Sequence[WalkedRow]]
Remove = Callable[[SqliteSession, Sequence[bytes]], None]


class PruningWalk:
    """A walk. `first` is the place before all rows; `last` finds the last place now, for tables that reuse places."""

    def __init__(
        self, look: Look, remove: Remove, *, first: object, last: Callable[[SqliteSession], Any] | None = None
    ) -> None:
        self._look = look
        self._remove = remove
        self._first = first
        self._last = last
        self._mark = first
        # The position among the kept rows.
        self._kept = first
        # Rows of this round that were looked at and stay.
        self._vain = 0
        self._among_kept = False

    def step(self, session: SqliteSession, *, before: int, limit: int) -> tuple[int, bool]:
        """Remove some of the next rows. Return how many, and True at the end of a round."""
        if self._among_kept:
            return self._through_kept(session, before, limit)
        seen = self._look(session, self._mark, None, before)
        removed, cut = self._remove_old(session, seen, limit)
        if cut is not None:
            self._mark = cut
            return removed, False
        young = next((number for number, one in enumerate(seen) if one.fate == "young"), len(seen))
        # Rows are nearly in the order of their time: if only young ones follow here, all later ones are young too.
        is_end = len(seen) < STEP_ROWS or young < len(seen)
        is_end = is_end and not any(one.fate in ("old", "kept") for one in seen[young:])
        passed = seen[:young] if is_end else seen
        if passed:
            self._mark = passed[-1].place
        self._clamp(session)
        self._vain += len(passed) - removed
        if is_end or self._vain >= VAIN_ROWS:
            self._among_kept, self._vain = True, 0
        return removed, False

    def _through_kept(self, session: SqliteSession, before: int, limit: int) -> tuple[int, bool]:
        seen = self._look(session, self._kept, self._mark, before)
        removed, cut = self._remove_old(session, seen, limit)
        if cut is not None:
            self._kept = cut
            return removed, False
        self._kept = seen[-1].place if len(seen) == STEP_ROWS else self._first
        self._vain += len(seen) - removed
        if self._kept != self._first and self._vain < KEPT_ROWS:
            return removed, False
        self._among_kept, self._vain = False, 0
        return removed, True

    def _remove_old(
        self, session: SqliteSession, seen: Sequence[WalkedRow], limit: int
    ) -> tuple[int, object]:
        """Remove at most `limit` rows. Return how many, and the place of the last one if there were more."""
        old = [one for one in seen if one.fate == "old"]
        if old:
            with session.writing():
                self._remove(session, [one.key for one in old[:limit]])
        return min(len(old), limit), old[limit - 1].place if len(old) > limit else None

    def _clamp(self, session: SqliteSession) -> None:
        """Lower the mark if rows at the end of the table were removed: new rows reuse their numbers."""
        if self._last is not None:
            self._mark = min(self._mark, self._last(session))
