"""The two ledgers that are upgraded, and their rows: for `upgrade.py`."""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Protocol

import msgspec

from lab.bench.scale import SETTINGS
from tests.servers import Postgres

DATABASE = "upgrade"
READ_S = 600.0  # one statement over a million rows, on a busy machine
FAILED = re.compile(r"\b(?:ERROR|FATAL|PANIC):")

_EVENTS = "select {id} from event"
_OPEN = """
select {id}, case when parked is not null then 'parked' when holder is not null then 'held' else 'waiting' end
from delivery
"""
_ENDED = 'select {delivery}, "end" from attempt where "end" is not null'
_LETTERS = "select {delivery} from dead_letter"
_HISTORY = "select count(*) from attempt"
_UNFINISHED = "select count(*) from delivery where type in ({types})"


class Rows(msgspec.Struct, frozen=True):
    """What a ledger holds at an instant. Ids are hexadecimal, in small letters."""

    events: set[str]
    open: dict[str, str]  # delivery -> parked, held or waiting
    ended: dict[str, str]  # delivery -> its end
    letters: set[str]  # dead letters
    history: int  # rows about requests and ends

    def deliveries(self) -> int:
        """Count deliveries, open and ended; one that is both is one."""
        return len(self.open.keys() | self.ended.keys())

    def counts(self) -> dict[str, int]:
        """Count rows by state."""
        return {
            "events": len(self.events),
            **dict(sorted(Counter(self.open.values()).items())),
            **dict(sorted(Counter(self.ended.values()).items())),
            "dead letters": len(self.letters),
            "history": self.history,
        }


class Ledger(Protocol):
    """A ledger, as the program looks at it beside the product."""

    url: str

    def ask(self, query: str) -> list[tuple[str, ...]]:
        """Return the rows of a query, whose `{id}` and `{delivery}` stand for those columns in hexadecimal."""

    def failed_statements(self) -> list[str]:
        """Return the lines in which the database server says that a statement or a session failed."""


class File:
    """A SQLite file."""

    def __init__(self, stack: ExitStack) -> None:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="surehook-upgrade-"))
        self.path = Path(folder) / "surehook.db"
        self.url = f"sqlite:///{self.path}"

    def ask(self, query: str) -> list[tuple[str, ...]]:
        """Ask the file, which a server may have open."""
        words = query.format(id="hex(id)", delivery="hex(delivery)")
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=READ_S)) as connection:
            return [tuple(map(str, row)) for row in connection.execute(words)]

    def failed_statements(self) -> list[str]:
        """Return nothing: a failed statement stands in the log of the process that made it."""
        return []


class Server:
    """A database of a private PostgreSQL server that writes through to the disk."""

    def __init__(self, stack: ExitStack) -> None:
        self.server = Postgres.new(durable=True, settings=SETTINGS)
        stack.callback(self.server.close)
        self.server.ask(f"create database {DATABASE}")
        self.url = self.server.url(DATABASE)
        self._begun = len(self._log())  # what the log tells of its start is no failure

    def _log(self) -> list[str]:
        return self.server.log.read_text(errors="replace").splitlines()

    def ask(self, query: str) -> list[tuple[str, ...]]:
        """Ask the database."""
        words = query.format(id="encode(id, 'hex')", delivery="encode(delivery, 'hex')")
        rows = self.server.ask(words, DATABASE, seconds=READ_S)
        return [tuple(str(cell) for cell in row) for row in rows]

    def failed_statements(self) -> list[str]:
        """Return the errors of the server's log."""
        return [line for line in self._log()[self._begun :] if FAILED.search(line)]


LEDGERS: dict[str, type[File] | type[Server]] = {"sqlite": File, "pg": Server}


def read(ledger: Ledger) -> Rows:
    """Read all that is compared."""
    return Rows(
        events={id.lower() for (id,) in ledger.ask(_EVENTS)},
        open={id.lower(): state for id, state in ledger.ask(_OPEN)},
        ended={id.lower(): end for id, end in ledger.ask(_ENDED)},
        letters={id.lower() for (id,) in ledger.ask(_LETTERS)},
        history=int(ledger.ask(_HISTORY)[0][0]),
    )


def unfinished(ledger: Ledger, types: tuple[str, ...]) -> int:
    """Count open deliveries of these event types."""
    return int(ledger.ask(_UNFINISHED.format(types=", ".join(f"'{name}'" for name in types)))[0][0])


def vanished(before: Rows, after: Rows) -> dict[str, int]:
    """Count what was there before and is not there after: an open delivery may have ended, and all else stays."""
    return {
        "events": len(before.events - after.events),
        "open deliveries": len(before.open.keys() - after.open.keys() - after.ended.keys()),
        "ends": sum(after.ended.get(id) != end for id, end in before.ended.items()),
        "dead letters": len(before.letters - after.letters),
        "history": max(0, before.history - after.history),
    }
