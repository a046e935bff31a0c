"""Who brought rows late tells of them, and nobody waits for it."""

from __future__ import annotations

import asyncio

from surehook.core.errors import LedgerUnavailable
from surehook.ledgers import late
from surehook.ledgers.late import LATE_MS, LateRows

from .making import NOW


class House:
    """A ledger that hears, and a clock that is moved."""

    def __init__(self) -> None:
        self.now = 100.0
        self.heard: list[tuple[list[bytes], int]] = []
        self.away = 0
        self.broken = 0
        self.telling = LateRows(self.tell, lambda: self.now)

    async def tell(self, ids: list[bytes], due_by: int) -> None:
        await asyncio.sleep(0)
        if self.away:
            self.away -= 1
            raise LedgerUnavailable("away")
        if self.broken:
            self.broken -= 1
            raise ValueError("a defect")
        self.heard.append((ids, due_by))


def commit(house: House, *rows: tuple[bytes, int], took_s: float) -> None:
    began = house.telling.begin()
    house.now += took_s
    house.telling.ended(began, rows, now=NOW)


def test_rows_that_are_visible_in_time_are_not_told_of() -> None:
    asyncio.run(_in_time())


async def _in_time() -> None:
    house = House()
    commit(house, (b"a", NOW), (b"b", NOW + 60_000), took_s=LATE_MS / 1000)
    await asyncio.sleep(0)
    assert house.heard == [] and house.telling._task is None


def test_rows_of_a_slow_commit_and_rows_that_waited_before_a_quick_one_are_told_of() -> None:
    asyncio.run(_slow())


async def _slow() -> None:
    house = House()
    commit(house, (b"a", NOW), (b"later", NOW + 60_000), took_s=6)
    commit(house, (b"waited", NOW - 5_000), (b"b", NOW), took_s=0.01)
    assert house.telling._task is not None
    await house.telling._task
    assert house.heard == [([b"a", b"waited"], NOW + 6_000)]


def test_a_ledger_that_is_away_is_told_later(monkeypatch) -> None:
    monkeypatch.setattr(late, "AGAIN_S", 0)
    asyncio.run(_away())


async def _away() -> None:
    house = House()
    house.away = 3
    commit(house, (b"a", NOW), took_s=6)
    assert house.telling._task is not None
    await house.telling._task
    assert house.heard[0][0] == [b"a"]


def test_a_defect_is_logged_and_keeps_nobody_else_waiting(monkeypatch, caplog) -> None:
    monkeypatch.setattr(late, "AT_ONCE", 1)
    asyncio.run(_defect())
    assert "a defect" in caplog.text


async def _defect() -> None:
    house = House()
    house.broken = 1
    commit(house, (b"a", NOW), (b"b", NOW), took_s=6)
    assert house.telling._task is not None
    await house.telling._task
    assert house.heard == [([b"b"], NOW + 6_000)]


def test_a_defect_does_not_keep_the_ledger_from_closing() -> None:
    asyncio.run(_defect_at_the_end())


async def _defect_at_the_end() -> None:
    house = House()
    house.broken = 1
    commit(house, (b"a", NOW), took_s=6)
    await house.telling.close()
    assert house.heard == [] and not house.telling._waiting


def test_what_waits_is_bounded_and_told_once_more_at_the_end(monkeypatch) -> None:
    monkeypatch.setattr(late, "WAITING_MOST", 3)
    asyncio.run(_end())


async def _end() -> None:
    house = House()
    commit(house, *((b"%d" % n, NOW) for n in range(10)), took_s=6)
    await house.telling.close()
    await house.telling.close()
    assert house.heard == [([b"0", b"1", b"2"], NOW + 6_000)]
