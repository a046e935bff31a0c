"""Counts of waiting deliveries. They read partial indexes; a count that took long is reused for a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from surehook.core.model import LANES
from surehook.ledgers.common.count_cache import CountCache
from surehook.ledgers.sqlite.session import SqliteSession
from surehook.ledgers.sqlite.statements import query
from surehook.ports.reading import LaneCount

R = TypeVar("R")


class SqliteCounts:
    def __init__(self, *, keeps: bool) -> None:
        self._cache = CountCache(keeps=keeps)

    def lanes(self, session: SqliteSession, *, now: int) -> list[LaneCount]:
        return self._counted("lanes", lambda: _lanes(session, now))

    def parked(self, session: SqliteSession) -> dict[tuple[bytes, str], int]:
        return dict(self._counted("parked", lambda: _parked(session)))

    def dead_letters(self, session: SqliteSession) -> int:
        """Count dead letters. Triggers keep the count, so it agrees with lists and costs the same however many there are."""
        return int(session.value(query("count_dead_letters")))

    def _counted(self, name: str, count: Callable[[], R]) -> R:
        kept: R | None = self._cache.get(name)
        if kept is not None:
            return kept
        started = self._cache.start()
        answer = count()
        self._cache.put(name, answer, started=started)
        return answer


def _lanes(session: SqliteSession, now: int) -> list[LaneCount]:
    with session.snapshot():
        held: dict[int, int] = dict(session.rows(query("count_held")))
        parked: dict[int, int] = dict(session.rows(query("count_parked_lanes")))
        counts = []
        for lane in range(len(LANES)):
            ready, oldest = session.rows(query("count_ready"), (lane, now))[0]
            scheduled = session.value(query("count_scheduled"), (lane, now))
            counts.append(LaneCount(held.get(lane, 0), ready, scheduled, parked.get(lane, 0), oldest, now))
    return counts


def _parked(session: SqliteSession) -> dict[tuple[bytes, str], int]:
    return {(endpoint, reason): rows for endpoint, reason, rows in session.rows(query("count_parked"))}
