"""Books on a watched binding."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from surehook.ledgers.sqlite import SqliteLedger
from tests.ledgers.desk import Desk
from tests.ledgers.making import NOW, Maker
from tests.ledgers.sqlite.watching import WatchedDriver


@pytest.fixture
def driver() -> WatchedDriver:
    return WatchedDriver()


@pytest.fixture
def book(driver: WatchedDriver, runner: asyncio.Runner, tmp_path: Path) -> Iterator[SqliteLedger]:
    ledger = SqliteLedger(str(tmp_path / "book.db"), driver=driver)
    runner.run(ledger.open(now=NOW))
    yield ledger
    runner.run(ledger.close())


@pytest.fixture
def desk(book: SqliteLedger, runner: asyncio.Runner) -> Desk:
    return runner.run(Desk(book, Maker()).begin())
