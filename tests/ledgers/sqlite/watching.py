"""A binding that writes down what runs on it, and can be told to fail a commit."""

from __future__ import annotations

import sqlite3
from typing import Any

from surehook.ledgers.sqlite import Driver


class WatchedConnection:
    def __init__(self, real: Any, driver: WatchedDriver) -> None:
        self.real, self._driver = real, driver

    @property
    def in_transaction(self) -> bool:
        return self.real.in_transaction

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        self._driver.ran.append(sql)
        self._driver.bound += len(parameters)
        if sql == "commit" and self._driver.fails_commits:
            raise sqlite3.OperationalError("disk I/O error")
        return self.real.execute(sql, parameters)

    def close(self) -> None:
        self._driver.closed += 1
        self.real.close()


class WatchedDriver(Driver):
    busy_timeout_s = 0.0

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.bound = 0
        self.fails_commits = False
        self.closed = 0

    def connect(self, path: str) -> Any:
        return WatchedConnection(super().connect(path), self)


def effort(session: Any, sql: str, parameters: tuple[Any, ...] = ()) -> int:
    """How much SQLite does for a statement, in hundreds of its machine's steps."""
    count = 0

    def tick() -> int:
        nonlocal count
        count += 1
        return 0

    session.connection.real.set_progress_handler(tick, 100)
    session.rows(sql, parameters)
    session.connection.real.set_progress_handler(None, 0)
    return count
