"""Another process on a desk's book, and a clock that moves when it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from surehook.ledgers.postgres.ledger import PostgresLedger
from tests.ledgers.desk import Desk
from tests.ledgers.making import NOW


class Ticks:
    """A clock that moves when it is told to, and by `slow` seconds with each reading."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slow = 0.0

    def __call__(self) -> float:
        self.now += self.slow
        return self.now


@contextmanager
def opened(place: str, runner: asyncio.Runner, **settings: Any) -> Iterator[PostgresLedger]:
    """A ledger on the database."""
    ledger = PostgresLedger(place, **settings)
    runner.run(ledger.open(now=NOW))
    yield ledger
    runner.run(ledger.close())


@contextmanager
def beside(desk: Desk, place: str, runner: asyncio.Runner, **settings: Any) -> Iterator[Desk]:
    """Another process on the same book: what it commits, the first one's marks do not know."""
    with opened(place, runner, **settings) as ledger:
        second = Desk(ledger, desk.make)
        second.endpoint = desk.endpoint
        second.node = runner.run(second.new_node())
        yield second
