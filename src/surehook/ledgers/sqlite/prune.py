"""Retention: rows that are old and no longer needed are removed, oldest first, a few hundred at a time.

It needs no index. Row numbers follow insertion, so old rows come first; rows that must stay (events of dead letters) are
passed once and then seldom (`pruning_walk.py`). Each step is a short transaction, so that hot work comes in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import json

from surehook.core.ids import floor
from surehook.core.limits import CLOSINGS_KEPT_MS
from surehook.ledgers.blocks import EVENTS, LINES
from surehook.ledgers.common.indexes import AHEAD_MS
from surehook.ledgers.sqlite.blocks import give_back, last_row
from surehook.ledgers.sqlite.pruning_walk import STEP_ROWS, PruningWalk, WalkedRow
from surehook.ledgers.sqlite.rows import packed_ids, run_batch
from surehook.ledgers.sqlite.session import SqliteSession
from surehook.ledgers.sqlite.statements import query

ALL_ROWS = (1 << 63) - 1
# Nothing depends on the row of an evicted node.
NODES_KEPT_MS = 24 * 3_600_000


class SqlitePruning:
    """Walks over finished deliveries, events and bodies, then keys, notices and receipts, one after another."""

    def __init__(self) -> None:
        finished = PruningWalk(_look_at_finished, _remove_finished, first=0, last=_last_finished)
        events = PruningWalk(_look_at_events, _remove_events, first=b"")
        bodies = PruningWalk(_look_at_bodies, _remove_bodies, first=b"")
        self._rounds: tuple[tuple[PruningWalk, bool], ...] = (
            (finished, False),
            (events, False),
            (bodies, True),
        )
        self._rest = (_keys, _notices, _receipts)
        self._at = 0

    def step(
        self, session: SqliteSession, *, events_before: int, bodies_before: int, limit: int, now: int
    ) -> tuple[int, bool]:
        """Remove some of the next rows. Return how many, and True at the end of a round of all walks."""
        limit = min(limit, STEP_ROWS)
        if self._at < len(self._rounds):
            walk, of_bodies = self._rounds[self._at]
            before = bodies_before if of_bodies else events_before
            removed, is_over = walk.step(session, before=before, limit=limit)
        else:
            with session.writing():
                prune = self._rest[self._at - len(self._rounds)]
                removed, is_over = prune(session, before=events_before, limit=limit, now=now)
                if is_over and prune is self._rest[-1]:
                    session.run(query("prune_closings"), (now - CLOSINGS_KEPT_MS,))
                    session.run(query("prune_nodes"), (now - NODES_KEPT_MS,))
                    session.run(query("prune_beats"))
        if is_over:
            self._at = (self._at + 1) % (len(self._rounds) + len(self._rest))
        return removed, is_over and self._at == 0


def _look_at_finished(session: SqliteSession, after: int, upto: int | None, before: int) -> list[WalkedRow]:
    """Look at finished deliveries other than dead letters."""
    parameters = (before, after, ALL_ROWS if upto is None else upto, STEP_ROWS)
    walked: list[Any] = json.decode(session.value(query("prune_finished"), parameters))
    return [WalkedRow(row, bytes.fromhex(id), fate) for row, id, fate in walked]


def _remove_finished(session: SqliteSession, deliveries: Sequence[bytes]) -> None:
    last = last_row(session, LINES)
    for delivery in deliveries:
        session.run(query("prune_history"), (delivery,))
        session.run(query("prune_replayed"), (delivery,))
        session.run(query("prune_dismissed"), (delivery,))
    give_back(session, LINES, last)


def _last_finished(session: SqliteSession) -> int:
    return last_row(session, LINES)


def _look_at_events(session: SqliteSession, after: bytes, upto: bytes | None, before: int) -> list[WalkedRow]:
    return _look_along_ids(session, after, upto, before, bodies=False)


def _look_at_bodies(session: SqliteSession, after: bytes, upto: bytes | None, before: int) -> list[WalkedRow]:
    return _look_along_ids(session, after, upto, before, bodies=True)


def _look_along_ids(
    session: SqliteSession, after: bytes, upto: bytes | None, before: int, *, bodies: bool
) -> list[WalkedRow]:
    ceiling = floor(before + AHEAD_MS)
    if upto is not None:
        ceiling = min(ceiling, upto + b"\x00")
    parameters = (before, 1 if bodies else 0, after, ceiling, STEP_ROWS)
    walked: list[Any] = json.decode(session.value(query("prune_events"), parameters))
    return [WalkedRow(bytes.fromhex(place), bytes.fromhex(id), fate) for place, id, fate in walked]


def _remove_events(session: SqliteSession, events: Sequence[bytes]) -> None:
    last = last_row(session, EVENTS)
    for event in events:
        session.run(query("prune_event"), (event,))
    give_back(session, EVENTS, last)


def _remove_bodies(session: SqliteSession, events: Sequence[bytes]) -> None:
    for event in events:
        session.run(query("prune_body"), (event,))


def _keys(session: SqliteSession, *, before: int, limit: int, now: int) -> tuple[int, bool]:
    removed = session.run(query("prune_keys"), (limit, now))
    return removed, removed < limit


def _notices(session: SqliteSession, *, before: int, limit: int, now: int) -> tuple[int, bool]:
    ceiling = floor(before + AHEAD_MS)
    old = packed_ids(session, query("old_notices"), (ceiling, before, limit))
    run_batch(session, "prune_notices", list(old))
    return len(old), len(old) < limit


def _receipts(session: SqliteSession, *, before: int, limit: int, now: int) -> tuple[int, bool]:
    ceiling = floor(before + AHEAD_MS)
    packed = session.value(query("old_receipts"), (ceiling, before, limit))
    keys = [bytes.fromhex(one) for pair in json.decode(packed) for one in pair]
    removed = run_batch(session, "prune_receipts", list(keys))
    return removed, removed < limit
