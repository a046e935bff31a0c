"""The ledgers under test, and their declared differences.

A difference is something that the technology makes so, not something that was left out. A new adapter
joins the suite by one entry in `ADAPTERS`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.ledger.ledger import MemoryLedger
from surehook.ledgers.postgres.ledger import PostgresLedger
from surehook.ledgers.sqlite import SqliteLedger
from tests.servers import postgres

from .making import NOW


@dataclass(frozen=True)
class Adapter:
    """How to make a ledger, and what its technology cannot or need not do.

    make            a ledger over a book at the given place; made twice, it is the same book (where `lasts`)
    lasts           the book outlives the object: it can be closed and opened again
    takes_nul       text with U+0000 is storable
    loses_answers   the connection may be lost while committing (CommitUnknown), so `record` is run again
    backs_up        `backup` writes a copy; otherwise it raises Problem `backup_unsupported`
    hands_over      several processes may share it, and ready work may go through a broker
    ground          what must be there while there are ledgers at a place
    slow            left to `make test`: it needs a server, or shares its statements with one that is not left
    """

    name: str
    make: Callable[[Path], Any]
    lasts: bool
    takes_nul: bool
    loses_answers: bool
    backs_up: bool
    hands_over: bool = True
    ground: Callable[[Path], AbstractContextManager[None]] = lambda place: nullcontext()
    slow: bool = False

    @property
    def param(self) -> Any:
        """As a parameter of a test."""
        return pytest.param(self, id=self.name, marks=[pytest.mark.slow] if self.slow else [])


_urls: dict[Path, str] = {}  # of the databases that stand for places


def url_of(place: Path) -> str:
    """The database that stands for a place, while there is ground."""
    return _urls[place]


def _prepare(url: str) -> None:
    """Make an empty book; the databases of the tests are copies of it."""

    async def open_once() -> None:
        ledger = PostgresLedger(url)
        await ledger.open(now=NOW)
        await ledger.close()

    asyncio.run(open_once())


@contextmanager
def fresh_database(place: Path) -> Iterator[None]:
    with postgres().database(_prepare, "book") as url:
        _urls[place] = url
        yield
        del _urls[place]


ADAPTERS = [
    Adapter(
        name="memory",
        make=lambda place: MemoryLedger(),
        lasts=False,
        takes_nul=True,
        loses_answers=True,  # by its hooks
        backs_up=False,
    ),
    *(
        Adapter(
            name=f"sqlite-{'inline' if inline else 'thread'}",
            make=lambda place, inline=inline: SqliteLedger(str(place / "book.db"), inline=inline),
            lasts=True,
            takes_nul=True,
            loses_answers=False,
            backs_up=True,
            hands_over=False,
            slow=not inline,
        )
        for inline in (True, False)
    ),
    Adapter(
        name="postgres",
        make=lambda place: PostgresLedger(_urls[place]),
        lasts=True,
        takes_nul=False,
        loses_answers=True,
        backs_up=False,
        ground=fresh_database,
        slow=True,
    ),
]
