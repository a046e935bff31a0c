"""Retention: what is old enough and needed by nothing goes, oldest first, a few hundred rows at a time.

No index is kept for it. Row numbers follow insertion, so old rows are found at the beginning; what must
stay (events of dead letters) is walked over, and a walk keeps its place between calls until it has come
to rows that are too young. Each step is a short transaction, so that hot work comes in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import json

from surehook.core.ids import delivery_range, floor
from surehook.ledgers.sqlite.endings import AHEAD_MS
from surehook.ledgers.sqlite.rows import packed_ids, run_batch
from surehook.ledgers.sqlite.session import Session
from surehook.ledgers.sqlite.statements import query

# Rows one step walks over: some milliseconds of the writer.
STEP_ROWS = 500
NODES_KEPT_MS = 24 * 3_600_000  # a buried node's row answers nothing that its absence would not


class Pruning:
    """The walks over finished deliveries, events, bodies, keys, notices and receipts, one after another."""

    def __init__(self) -> None:
        self._walks: tuple[Callable[..., tuple[int, Any]], ...] = (
            _stories, _events, _bodies, _keys, _notices, _receipts,
        )  # fmt: skip
        self._walk = 0
        self._place: Any = None

    def step(
        self, session: Session, *, events_before: int, bodies_before: int, limit: int, now: int
    ) -> tuple[int, bool]:
        """Remove some of the next rows: how many, and whether all walks have come to their ends."""
        before = bodies_before if self._walks[self._walk] is _bodies else events_before
        with session.writing():
            removed, self._place = self._walks[self._walk](
                session, self._place, before=before, limit=min(limit, STEP_ROWS), now=now
            )
            if self._place is None:
                self._walk = (self._walk + 1) % len(self._walks)
                if self._walk == 0:
                    session.run(query("prune_nodes"), (now - NODES_KEPT_MS,))
                    session.run(query("prune_beats"))
        return removed, self._walk == 0 and self._place is None


def _stories(session: Session, place: Any, *, before: int, limit: int, now: int) -> tuple[int, Any]:
    """Finished deliveries with their histories, dead letters excepted."""
    place = place or 0
    packed = session.value(query("prune_stories"), (before, place, STEP_ROWS))
    walked: list[Any] = json.decode(packed)
    old = [(row, bytes.fromhex(id)) for row, id, fate in walked if fate == "old"]
    for _, delivery in old[:limit]:
        session.run(query("prune_story"), (delivery,))
        session.run(query("prune_replayed"), (delivery,))
        session.run(query("prune_dismissed"), (delivery,))
    if len(old) > limit:
        return limit, old[limit - 1][0]
    # Rows are in the order of their commits: where a whole step is too young, so is the rest.
    fates = {fate for _, _, fate in walked}
    is_end = len(walked) < STEP_ROWS or ("young" in fates and not fates & {"old", "kept"})
    return len(old), None if is_end else walked[-1][0]


def _events(session: Session, place: Any, *, before: int, limit: int, now: int) -> tuple[int, Any]:
    return _old_events(session, "prune_event", place, before=before, limit=limit, bodies=False)


def _bodies(session: Session, place: Any, *, before: int, limit: int, now: int) -> tuple[int, Any]:
    return _old_events(session, "prune_body", place, before=before, limit=limit, bodies=True)


def _old_events(
    session: Session, remove: str, place: Any, *, before: int, limit: int, bodies: bool
) -> tuple[int, Any]:
    ceiling = floor(before + AHEAD_MS)
    parameters = (before, 1 if bodies else 0, place or b"", ceiling, STEP_ROWS)
    walked: list[Any] = json.decode(session.value(query("prune_events"), parameters))
    removed = 0
    for id, is_old in walked:
        event = place = bytes.fromhex(id)
        if not is_old or _is_needed(session, event):
            continue
        session.run(query(remove), (event,))
        removed += 1
        if removed == limit:
            return removed, place
    return removed, None if len(walked) < STEP_ROWS else place


def _is_needed(session: Session, event: bytes) -> bool:
    low, high = delivery_range(event)
    return bool(session.value(query("event_needed"), (low, high, event, low, high, event)))


def _keys(session: Session, place: Any, *, before: int, limit: int, now: int) -> tuple[int, Any]:
    removed = session.run(query("prune_keys"), (limit, now))
    return removed, None if removed < limit else True


def _notices(session: Session, place: Any, *, before: int, limit: int, now: int) -> tuple[int, Any]:
    ceiling = floor(before + AHEAD_MS)
    old = packed_ids(session, query("old_notices"), (ceiling, before, limit))
    run_batch(session, "prune_notices", list(old))
    return len(old), None if len(old) < limit else True


def _receipts(session: Session, place: Any, *, before: int, limit: int, now: int) -> tuple[int, Any]:
    ceiling = floor(before + AHEAD_MS)
    packed = session.value(query("old_receipts"), (ceiling, before, limit))
    keys = [bytes.fromhex(one) for pair in json.decode(packed) for one in pair]
    removed = run_batch(session, "prune_receipts", list(keys))
    return removed, None if removed < limit else True
