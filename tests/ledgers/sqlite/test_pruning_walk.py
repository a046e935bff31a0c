"""Walks of retention: what is old goes, and what is kept is not looked at again and again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from surehook.ledgers.sqlite.pruning_walk import KEPT_ROWS, STEP_ROWS, PruningWalk, WalkedRow


class Rows:
    """Rows by number, with the instants of their ends; some are needed."""

    def __init__(self, count: int) -> None:
        self.ends = {number: number for number in range(1, count + 1)}
        self.needed: set[int] = set()
        self.looked = self.written = 0
        self.walk = PruningWalk(
            self._look, self._remove, first=0, last=lambda session: max(self.ends, default=0)
        )

    @contextmanager
    def writing(self) -> Iterator[None]:
        self.written += 1
        yield

    def round(self, *, before: int) -> None:
        over = False
        while not over:
            _, over = self.walk.step(self, before=before, limit=STEP_ROWS)  # type: ignore[arg-type]

    def _look(self, session: Any, after: int, upto: int | None, before: int) -> list[WalkedRow]:
        found = [row for row in sorted(self.ends) if row > after and (upto is None or row <= upto)][
            :STEP_ROWS
        ]
        self.looked += len(found)
        return [WalkedRow(row, row.to_bytes(8, "big"), self._fate(row, before)) for row in found]

    def _fate(self, row: int, before: int) -> str:
        if self.ends[row] >= before:
            return "young"
        return "kept" if row in self.needed else "old"

    def _remove(self, session: Any, keys: Sequence[bytes]) -> None:
        for key in keys:
            del self.ends[int.from_bytes(key, "big")]


def test_what_is_old_goes_and_what_is_needed_or_young_stays() -> None:
    rows = Rows(3_000)
    rows.needed = set(range(10, 3_000, 10))
    rows.round(before=2_001)
    assert set(rows.ends) == {*range(10, 2_001, 10), *range(2_001, 3_001)}


def test_kept_rows_are_passed_once_and_then_a_few_in_a_round_without_a_write() -> None:
    rows = Rows(10_000)
    rows.needed = set(range(1, 10_001))
    rows.round(before=10_001)
    rows.looked = rows.written = 0
    for _ in range(10):
        rows.round(before=10_001)
    assert rows.looked <= 10 * KEPT_ROWS
    assert rows.written == 0


def test_what_is_needed_no_longer_is_found_within_one_lap() -> None:
    rows = Rows(5_000)
    rows.needed = set(range(1, 5_001))
    rows.round(before=5_001)
    rows.needed -= {7, 2_500, 5_000}
    for _ in range(5_000 // KEPT_ROWS + 1):
        rows.round(before=5_001)
    assert len(rows.ends) == 4_997


def test_a_start_looks_through_kept_rows_over_several_rounds() -> None:
    rows = Rows(50_000)
    rows.needed = set(range(1, 50_001)) - {50_000}
    rows.round(before=50_001)
    assert rows.looked < 25_000
    rows.round(before=50_001)
    rows.round(before=50_001)
    assert 50_000 not in rows.ends


def test_places_that_are_used_again_are_walked_again() -> None:
    rows = Rows(1_000)
    rows.round(before=1_001)
    assert rows.ends == {}
    rows.ends = dict.fromkeys(range(1, 101), 2_000)  # numbers begin anew in an empty table
    rows.round(before=2_001)
    assert rows.ends == {}


def test_rows_out_of_the_order_of_their_time_do_not_hide_what_follows() -> None:
    rows = Rows(2_000)
    rows.ends[5] = 9_000  # a clock that was ahead
    rows.round(before=2_001)
    assert rows.ends == {5: 9_000}
    rows.round(before=9_001)
    assert rows.ends == {}
