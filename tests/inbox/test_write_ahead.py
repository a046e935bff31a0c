"""A new SQLite file gets its log, also where several processes make it at the same moment."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from surehook.inbox.sql import engines

HELD = ["begin immediate", "begin exclusive"]


class Waiting:
    """A cursor that lets the transaction that is in its way end when it waits for it; SQLite itself does not wait, but time
    passes as if it did."""

    def __init__(self, cursor: sqlite3.Cursor, others: list[sqlite3.Connection]):
        self._cursor = cursor
        self._others = others
        self.waited = 0
        self.bounds: list[int] = []
        self.now = 0.0

    def boot(self) -> float:
        return self.now

    def execute(self, statement: str) -> Any:
        if statement.startswith("PRAGMA busy_timeout="):
            self.bounds.append(int(statement.partition("=")[2]))
            return None
        if statement == "BEGIN EXCLUSIVE":
            self.waited += 1
            if self._others:
                self._others.pop().rollback()
        return self._cursor.execute(statement)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "inbox.db"
    with closing(sqlite3.connect(made)) as connection:
        connection.execute("create table somebodys (id integer)")
    return made


def opened(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(file, isolation_level=None, timeout=0)


@pytest.mark.parametrize("held", HELD)
def test_a_transaction_that_is_in_the_way_is_waited_for(file, held):
    with closing(opened(file)) as other, closing(opened(file)) as own:
        other.execute(held)
        cursor = Waiting(own.cursor(), [other])
        engines._write_ahead(cursor, cursor.boot)
        assert cursor.waited == 1
        assert own.execute("pragma journal_mode").fetchone() == ("wal",)
        assert not own.in_transaction


def test_one_that_does_not_end_is_an_error_when_the_wait_is_over(file):
    with closing(opened(file)) as other, closing(opened(file)) as own:
        other.execute("begin immediate")
        cursor = Waiting(own.cursor(), [])
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            engines._write_ahead(cursor, cursor.boot)
        assert cursor.waited == 1


def test_what_is_no_wait_is_not_tried_again(tmp_path):
    with closing(opened(tmp_path / "inbox.db")) as own:
        (tmp_path / "inbox.db").write_bytes(b"no database" * 100)
        cursor = Waiting(own.cursor(), [])
        with pytest.raises(sqlite3.DatabaseError, match="not a database"):
            engines._write_ahead(cursor, cursor.boot)
        assert cursor.waited == 0


@pytest.mark.parametrize("spent_ms", [0, 6_000, 10_000])
def test_all_waits_together_take_ten_seconds_at_most(file, spent_ms):
    """It was twenty: SQLite had waited for as long before it said that the file is locked."""
    with closing(opened(file)) as other, closing(opened(file)) as own:
        other.execute("begin immediate")
        cursor = Waiting(own.cursor(), [])
        before = cursor.execute

        def execute(statement: str) -> Any:
            if statement == "PRAGMA journal_mode=WAL":
                cursor.now += spent_ms / 1000
            return before(statement)

        cursor.execute = execute  # type: ignore[method-assign]
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            engines._write_ahead(cursor, cursor.boot)
    assert cursor.bounds == ([10_000] if spent_ms == 10_000 else [10_000, 10_000 - spent_ms])
