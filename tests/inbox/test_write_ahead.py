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
    """A cursor that lets the transaction that is in its way end when it waits for it."""

    def __init__(self, cursor: sqlite3.Cursor, others: list[sqlite3.Connection]):
        self._cursor = cursor
        self._others = others
        self.waited = 0

    def execute(self, statement: str) -> Any:
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
        engines._write_ahead(cursor)
        assert cursor.waited == 1
        assert own.execute("pragma journal_mode").fetchone() == ("wal",)
        assert not own.in_transaction


def test_one_that_does_not_end_is_an_error_when_the_wait_is_over(file):
    with closing(opened(file)) as other, closing(opened(file)) as own:
        other.execute("begin immediate")
        cursor = Waiting(own.cursor(), [])
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            engines._write_ahead(cursor)
        assert cursor.waited == 1


def test_what_is_no_wait_is_not_tried_again(tmp_path):
    with closing(opened(tmp_path / "inbox.db")) as own:
        (tmp_path / "inbox.db").write_bytes(b"no database" * 100)
        cursor = Waiting(own.cursor(), [])
        with pytest.raises(sqlite3.DatabaseError, match="not a database"):
            engines._write_ahead(cursor)
        assert cursor.waited == 0
