"""How many deliveries wait where. Counted in partial indexes; a count that took long is kept for a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from surehook.core.model import LANES
from surehook.ledgers.sqlite.session import Session
from surehook.ledgers.sqlite.statements import query
from surehook.ports.reading import LaneCount

# Counting takes at most one part in so many of the reader's time: a million rows take a tenth of a second.
SHARE = 20
# A count that was quicker than this (seconds) is made anew each time.
QUICK_S = 0.005


class Counts:
    """`keeps` False: always count, so that a simulated world does not depend on how fast the real one is."""

    def __init__(self, *, keeps: bool) -> None:
        self._keeps = keeps
        self._kept: dict[str, tuple[float, Any]] = {}

    def lanes(self, session: Session, *, now: int) -> list[LaneCount]:
        counts: list[LaneCount] = self._counted("lanes", lambda: _lanes(session, now))
        return counts

    def parked(self, session: Session) -> dict[tuple[bytes, str], int]:
        counts: dict[tuple[bytes, str], int] = self._counted("parked", lambda: _parked(session))
        return dict(counts)

    def _counted(self, name: str, count: Callable[[], Any]) -> Any:
        start = time.monotonic()
        good_until, kept = self._kept.get(name, (0.0, None))
        if self._keeps and start < good_until:
            return kept
        answer = count()
        took = time.monotonic() - start
        self._kept[name] = (start + took * SHARE if took > QUICK_S else 0.0, answer)
        return answer


def _lanes(session: Session, now: int) -> list[LaneCount]:
    with session.snapshot():
        held = dict(session.rows(query("count_held")))
        parked = dict(session.rows(query("count_parked_lanes")))
        counts = []
        for lane in range(len(LANES)):
            ready, oldest = session.rows(query("count_ready"), (lane, now))[0]
            scheduled = session.value(query("count_scheduled"), (lane, now))
            counts.append(LaneCount(held.get(lane, 0), ready, scheduled, parked.get(lane, 0), oldest))
    return counts


def _parked(session: Session) -> dict[tuple[bytes, str], int]:
    return {(endpoint, reason): rows for endpoint, reason, rows in session.rows(query("count_parked"))}
