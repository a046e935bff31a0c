"""A walk of retention in the order of rows: through what has come since the last one, and a little of what was kept.

Rows that are old and needed (dead letters, events of unfinished deliveries) stay, and must cost nothing by lying there.
So a walk has a mark: everything up to it was looked at, and what is left there was kept. Each round goes on from the
mark through all that is old by now, and through a bounded piece of what lies before it, since what was kept may be
needed no longer. A million kept rows are looked through once in three days, at a few milliseconds a minute.

Looks that find nothing to remove write nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from surehook.ledgers.sqlite.session import Session

STEP_ROWS = 250  # looked at in one step: a millisecond or two
KEPT_ROWS = 250  # kept rows that one round looks at in vain
VAIN_ROWS = 20_000  # rows past the mark that one round looks at in vain: a start finds all kept ones there


class Seen(NamedTuple):
    """One row that was looked at. `fate`: old (it goes), kept, young, or open (nothing to this walk)."""

    place: Any
    key: bytes
    fate: str


Look = Callable[[Session, Any, Any, int], Sequence[Seen]]  # rows after a place up to another one; instant
Remove = Callable[[Session, Sequence[bytes]], None]


class Walk:
    """`first` is the place before all rows. `last` finds the last place there is now, where places can be used again."""

    def __init__(
        self, look: Look, remove: Remove, *, first: Any, last: Callable[[Session], Any] | None = None
    ) -> None:
        self._look = look
        self._remove = remove
        self._first = first
        self._last = last
        self._mark = first
        self._kept = first  # how far the kept ones were looked through
        self._vain = 0  # rows of this round that were looked at and stay
        self._among_kept = False

    def step(self, session: Session, *, before: int, limit: int) -> tuple[int, bool]:
        """Remove some of the next rows: how many, and whether this round of the walk is over."""
        if self._among_kept:
            return self._through_kept(session, before, limit)
        seen = self._look(session, self._mark, None, before)
        removed, cut = self._remove_old(session, seen, limit)
        if cut is not None:
            self._mark = cut
            return removed, False
        young = next((number for number, one in enumerate(seen) if one.fate == "young"), len(seen))
        # Where only young ones follow, all behind them are young: rows come in the order of their time, nearly.
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

    def _through_kept(self, session: Session, before: int, limit: int) -> tuple[int, bool]:
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

    def _remove_old(self, session: Session, seen: Sequence[Seen], limit: int) -> tuple[int, Any]:
        """Remove at most `limit`; where there were more, the place of the last one that went."""
        old = [one for one in seen if one.fate == "old"]
        if old:
            with session.writing():
                self._remove(session, [one.key for one in old[:limit]])
        return min(len(old), limit), old[limit - 1].place if len(old) > limit else None

    def _clamp(self, session: Session) -> None:
        """What is removed at the end of a table gives its places to new rows."""
        if self._last is not None:
            self._mark = min(self._mark, self._last(session))
