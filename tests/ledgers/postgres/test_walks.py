"""Walks through rows that go one by one: what is old goes, what is kept is looked at a little, and starts lose no place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from surehook.core.instants import DAY_MS
from surehook.ledgers.postgres.cursors import Cursors
from surehook.ledgers.postgres.days import Day
from surehook.ledgers.postgres.statements import query
from surehook.ledgers.postgres.walks import (
    KEPT_ROWS,
    KEPT_WALK,
    STEP_ROWS,
    Fresh,
    Kept,
    LookResult,
    WalkedTable,
)

FIRST = 20_000  # the first day
DAYS = 5
NOW = (FIRST + 100) * DAY_MS


class Rows:
    """Rows of some days by id, in the place of a session; some are needed. Places are kept as the ledger keeps them."""

    def __init__(self, of_a_day: int, *, kept: int = 0) -> None:
        self.days = [Day(FIRST + n, tables=("event", "attempt")) for n in range(DAYS)]
        self.parts = {f"event_day_{day.number}": self._ids(day.number, of_a_day) for day in self.days}
        self.parts["event_kept"] = self._ids(FIRST - 1, kept)
        self.needed = {id for ids in self.parts.values() for id in ids}
        self.places: dict[str, bytes] = {}
        self.looked = self.written = 0
        self.kind = WalkedTable("events", "event", self._look, self._remove)
        self.start()

    @staticmethod
    def _ids(day: int, count: int) -> list[bytes]:
        return [(day * DAY_MS + n).to_bytes(6, "big") + b"7" * 10 for n in range(count)]

    def start(self) -> None:
        """A process begins: what it knows is what is written."""
        self._fresh, self._kept, self._marks = Fresh(self.kind), Kept(), Cursors()

    def round(self) -> None:
        asyncio.run(self._round())

    async def _round(self) -> None:
        session: Any = self
        await self._marks.load(session, shared=KEPT_WALK)
        over = False
        while not over:
            _, over = await self._fresh.step(session, self.days, self._marks, before=NOW, limit=STEP_ROWS)
        over = False
        while not over:
            _, over = await self._kept.step(
                session, self.days, self._marks, befores={self.kind: NOW}, limit=STEP_ROWS
            )

    @property
    def left(self) -> set[bytes]:
        return {id for ids in self.parts.values() for id in ids}

    async def _look(self, session: Any, part: str, after: bytes, below: bytes, before: int) -> LookResult:
        found = [id for id in self.parts[part] if after < id < below and id > after[:16]][:STEP_ROWS]
        self.looked += len(found)
        return LookResult(
            len(found), found[-1] if found else after, [id for id in found if id not in self.needed]
        )

    async def _remove(self, session: Any, part: str, keys: Sequence[bytes]) -> int:
        gone = set(keys)
        self.parts[part] = [id for id in self.parts[part] if id not in gone]
        return len(gone)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        self.written += 1
        yield

    async def rows(self, sql: str, *parameters: Any) -> list[dict[str, Any]]:
        assert sql == query("retention_places")
        return [{"walk": walk, "place": place} for walk, place in self.places.items()]

    async def change(self, sql: str, walk: str, place: bytes) -> None:
        self.written += 1
        self.places[walk] = place


def test_kept_rows_are_passed_once_and_then_a_thousand_in_a_round() -> None:
    rows = Rows(1_500, kept=3_000)
    rows.round()
    for _ in range(20):
        rows.looked = rows.written = 0
        rows.round()
        assert rows.looked <= KEPT_ROWS + STEP_ROWS
        assert rows.written <= 1  # of the place
    assert rows.left == rows.needed


def test_what_is_needed_no_longer_is_found_within_one_time_round() -> None:
    rows = Rows(1_500, kept=3_000)
    rows.round()
    everything = sorted(rows.needed)
    rows.needed -= {everything[0], everything[5_000], everything[-1]}
    for _ in range(len(everything) // KEPT_ROWS + DAYS):
        rows.round()
    assert rows.left == rows.needed


def test_what_became_old_at_once_goes_at_once() -> None:
    rows = Rows(1_500, kept=3_000)
    rows.round()
    rows.needed = set()
    rows.round()
    rows.round()
    assert rows.left == set()


def test_a_start_goes_on_where_others_were() -> None:
    rows = Rows(1_500, kept=3_000)
    rows.round()
    for _ in range(len(rows.needed) // KEPT_ROWS + DAYS):
        before = rows.places[KEPT_WALK]
        rows.looked = 0
        rows.start()
        rows.round()
        assert rows.looked <= KEPT_ROWS + STEP_ROWS
        assert rows.places[KEPT_WALK] != before


def test_days_that_go_whole_are_left_alone() -> None:
    rows = Rows(10)
    rows.needed = set()
    rows.days[2] = rows.days[2]._replace(size=1 << 30)
    rows.round()
    assert len(rows.left) == 10
