"""The ledgers under test, and their declared differences.

A difference is something that the technology makes so, not something that was left out. A new adapter
joins the suite by one entry in `ADAPTERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surehook.ledgers.memory.ledger import MemoryLedger
from surehook.ledgers.sqlite import SqliteLedger


@dataclass(frozen=True)
class Adapter:
    """How to make a ledger, and what its technology cannot or need not do.

    make            a ledger over a book at the given place; made twice, it is the same book (where `lasts`)
    lasts           the book outlives the object: it can be closed and opened again
    takes_nul       text with U+0000 is storable
    loses_answers   the connection may be lost while committing (CommitUnknown), so `record` is run again
    backs_up        `backup` writes a copy; otherwise it raises Problem `backup_unsupported`
    """

    name: str
    make: Callable[[Path], Any]
    lasts: bool
    takes_nul: bool
    loses_answers: bool
    backs_up: bool


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
        )
        for inline in (True, False)
    ),
]
