"""The one book of several processes as PostgreSQL shows it to each: claims begin at marks, and commits take their time.

The marks are the ledger's own (`ledgers/postgres/marks.py`). A claim sees what was there when it began, and gives of that
what nobody has taken when its commit is through. `gone` is how many entries of rows that were taken the index of ready
rows still has: what a look back over everything walks over while somebody holds a snapshot.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from surehook.core.model import Delivery, Lane, Settled
from surehook.ledgers.memory.ledger import MemoryLedger
from surehook.ledgers.postgres.marks import BEGINNING, Marks
from surehook.ports.ledger import ANY_SIZE, Burial, Recorded


class MarkedLedger:
    """One process's. `commit` is awaited where a claim commits."""

    def __init__(
        self,
        inner: MemoryLedger,
        *,
        clock: Callable[[], float],
        commit: Callable[[], Awaitable[None]],
        gone: int,
    ) -> None:
        self._inner = inner
        self._marks = Marks(clock)
        self._commit = commit
        self._gone = gone

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def claim(
        self, lane: Lane, *, node: bytes, limit: int, due_by: int, now: int, size: int = ANY_SIZE
    ) -> list[Delivery]:
        begin = self._marks.begin(lane)
        book = self._inner.book
        seen = takewhile(lambda key: key[0] <= due_by, book.ready[lane].ascending((begin, b"")))
        chosen = [key for key, _ in zip(seen, range(limit), strict=False)]
        await self._commit()
        book.fence(node)
        rows = (book.rows[key[1]] for key in chosen if key in book.ready[lane])
        leased = [book.lease(row, node) for row in list(self._inner.up_to(size, rows))]
        walked = self._gone if begin == BEGINNING else 0
        self._marks.ended(lane, leased, walked=walked, limit=limit, size=size, due_by=due_by, now=now)
        return leased

    async def next_due(self, lane: Lane) -> int | None:
        first = next(self._inner.book.ready[lane].ascending((self._marks.at(lane), b"")), None)
        return None if first is None else first[0]

    # -- what this process knows to lie behind its marks ------------------------------------------------

    async def bury(
        self, nodes: Sequence[bytes], *, now: int, judged: Mapping[bytes, int] | None = None
    ) -> Burial:
        held = [id for node in nodes for id in await self._inner.held(node, limit=1 << 30)]
        burial = await self._inner.bury(nodes, now=now, judged=judged)
        self._lower(held)
        return burial

    async def free(self, ids: Sequence[bytes], *, node: bytes, now: int) -> None:
        await self._inner.free(ids, node=node, now=now)
        self._lower(ids)

    async def release(self, deliveries: Sequence[Delivery], *, node: bytes, now: int) -> None:
        await self._inner.release(deliveries, node=node, now=now)
        self._marks.lower(min((delivery.due_at for delivery in deliveries), default=None))

    async def record(self, settled: Sequence[Settled], **named: Any) -> Recorded:
        recorded = await self._inner.record(settled, **named)
        going_on = [one.due_at for one in settled if one.end is None and one.parked is None]
        self._marks.lower(min(going_on, default=None))
        return recorded

    def _lower(self, ids: Sequence[bytes]) -> None:
        """To the earliest of these rows that are free now."""
        rows = [self._inner.book.rows.get(id) for id in ids]
        self._marks.lower(
            min((row.due_at for row in rows if row is not None and row.holder is None), default=None)
        )
