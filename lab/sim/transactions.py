"""Which transactions of the one book are under way, as a statement of PostgreSQL sees it (`ledgers/postgres/under_way.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from surehook.ledgers.postgres.under_way import Snapshot


class Transactions:
    """Of all processes."""

    def __init__(self) -> None:
        self._last = 0
        self._under_way: dict[int, None] = {}

    @contextmanager
    def begin(self) -> Iterator[Snapshot]:
        """One more, until the block ends; what it sees of the others."""
        self._last += 1
        own = self._last
        unseen = frozenset(self._under_way)
        self._under_way[own] = None
        try:
            yield Snapshot(min(unseen, default=own), unseen, own)
        finally:
            del self._under_way[own]
