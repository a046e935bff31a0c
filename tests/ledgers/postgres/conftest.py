"""A desk on a database of the test's own, and a connection beside it that looks where the port does not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from surehook.ledgers.postgres.ledger import PostgresLedger
from tests.ledgers.adapters import ADAPTERS, url_of
from tests.ledgers.desk import Desk
from tests.ledgers.making import NOW, Maker
from tests.ledgers.postgres.beside import Ticks
from tests.ledgers.postgres.beside import beside as beside_it

QUICK = {"test_arrays.py", "test_commits.py", "test_hot_plans.py"}  # what stands on the way of every event


def pytest_itemcollected(item: pytest.Item) -> None:
    """Each test copies a database: `make check` takes three modules."""
    if item.path.name not in QUICK:
        item.add_marker(pytest.mark.slow)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[str]:
    """The URL of a fresh database with an empty book."""
    (adapter,) = (one for one in ADAPTERS if one.name == "postgres")
    with adapter.ground(tmp_path):
        yield url_of(tmp_path)


@pytest.fixture
def book(place: str, runner: asyncio.Runner) -> Iterator[PostgresLedger]:
    ledger = PostgresLedger(place)
    runner.run(ledger.open(now=NOW))
    yield ledger
    runner.run(ledger.close())


@pytest.fixture
def desk(book: PostgresLedger, runner: asyncio.Runner) -> Desk:
    return runner.run(Desk(book, Maker()).begin())


@pytest.fixture
def ticks() -> Ticks:
    """A clock that stands still unless the test moves it."""
    return Ticks()


@pytest.fixture
def other(place: str, desk: Desk, runner: asyncio.Runner) -> Iterator[Desk]:
    """A desk of another node on the same database."""
    with beside_it(desk, place, runner) as second:
        yield second


@pytest.fixture
def beside(place: str, runner: asyncio.Runner) -> Iterator[Any]:
    """A bare connection to the same database."""
    connection = runner.run(asyncpg.connect(place))
    yield connection
    runner.run(connection.close())
