"""The one book of several processes as PostgreSQL shows it to each: claims begin at marks, and commits take their time.

The marks are the ledger's own (`ledgers/postgres/marks.py`), and so are who tells of rows that came late
(`ledgers/late.py`) and what is known of `transactions` under way; `strays` are all that were told of, in the one book. A claim
sees what was there when it began, and gives of that what nobody has taken when its commit is through. A version before does
not tell (`tells`). `gone` is how many entries of rows that were taken the index of ready rows still has: what a look back
over everything walks over while somebody holds a snapshot.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import islice, takewhile
from typing import Any

from lab.ledger.ledger import MemoryLedger
from lab.ledger.rows import Row
from lab.sim.transactions import Transactions
from surehook.core.model import LANES, Delivery, Lane, Settled
from surehook.ledgers.late import LATE_MS, LateRows
from surehook.ledgers.postgres.marks import BEGINNING, Marks
from surehook.ledgers.postgres.under_way import UnderWay
from surehook.ports.ledger import ANY_SIZE, AcceptResult, Eviction, Incoming, Recorded


class MarkedLedger:
    """One process's. `commit` is awaited where a claim commits."""

    def __init__(
        self,
        inner: MemoryLedger,
        *,
        clock: Callable[[], float],
        commit: Callable[[], Awaitable[None]],
        gone: int,
        strays: dict[bytes, None] | None = None,
        tells: bool = True,
        transactions: Transactions | None = None,
    ) -> None:
        self._tells = tells
        self._inner = inner
        self._strays = {} if strays is None else strays
        self._late_rows = LateRows(self._tell, clock)
        self._clock = clock
        self._marks = Marks(clock)
        self._commit = commit
        self._gone = gone
        self._transactions = Transactions() if transactions is None else transactions
        self._under_way = [UnderWay(BEGINNING) for _ in LANES]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def claim(self, lane: Lane, *, now: int, **named: Any) -> list[Delivery]:
        with self._transactions.begin() as seen:
            leased = await self._claim(lane, now=now, **named)
        for behind in self._under_way[lane].saw(seen, now - LATE_MS):
            self._marks.lower(behind)
        return leased

    async def _claim(
        self, lane: Lane, *, node: bytes, limit: int, due_by: int, now: int, size: int = ANY_SIZE
    ) -> list[Delivery]:
        book = self._inner.book
        told = sorted((row.due_at, row.id) for row in self._ready(self._strays) if row.lane == lane)
        told = [key for key in told if key[0] < min(due_by, self._marks.at(lane))][:limit]
        rest = limit - len(told)
        begin = self._marks.begin(lane) if rest else now
        seen = takewhile(lambda key: key[0] <= due_by, book.ready[lane].ascending((begin, b"")))
        chosen = list(islice((key for key in seen if key not in told), rest))
        await self._commit()
        book.fence(node)
        rows = (book.rows[key[1]] for key in [*told, *chosen] if key in book.ready[lane])
        leased = [book.lease(row, node) for row in list(self._inner.up_to(size, rows))]
        for id in self._strays.keys() - {row.id for row in self._ready(self._strays)}:
            del self._strays[id]
        if rest:
            others = [delivery for delivery in leased if (delivery.due_at, delivery.id) not in told]
            walked = self._gone if begin == BEGINNING else 0
            self._marks.ended(lane, others, walked=walked, limit=rest, size=size, due_by=due_by, now=now)
        return leased

    async def next_due(self, lane: Lane) -> int | None:
        first = next(self._inner.book.ready[lane].ascending((self._marks.at(lane), b"")), None)
        return None if first is None else first[0]

    # -- what this process knows to lie behind marks, its own and those of others ---------------------------

    async def accept(self, batch: Sequence[Incoming], *, now: int, **named: Any) -> AcceptResult:
        result = await self._inner.accept(batch, now=now, **named)
        deliveries = [delivery for item in batch for delivery in item.deliveries]
        self._came(
            [(one.id, one.due_at) for one in deliveries if not one.held and one.parked is None], now=now
        )
        return result

    async def evict(
        self, nodes: Sequence[bytes], *, now: int, judged: Mapping[bytes, int] | None = None
    ) -> Eviction:
        held = [id for node in nodes for id in await self._inner.held(node, limit=1 << 30)]
        eviction = await self._inner.evict(nodes, now=now, judged=judged)
        self._note(held, now)
        self._lower(held)
        return eviction

    async def free(self, ids: Sequence[bytes], *, node: bytes, now: int) -> None:
        await self._inner.free(ids, node=node, now=now)
        self._note(ids, now)
        self._lower(ids)

    async def release(self, deliveries: Sequence[Delivery], *, node: bytes, now: int) -> None:
        await self._inner.release(deliveries, node=node, now=now)
        self._note([delivery.id for delivery in deliveries], now)
        self._marks.lower(min((delivery.due_at for delivery in deliveries), default=None))

    async def record(self, settled: Sequence[Settled], *, now: int, **named: Any) -> Recorded:
        recorded = await self._inner.record(settled, now=now, **named)
        going_on = [
            (one.delivery.id, one.due_at) for one in settled if one.end is None and one.parked is None
        ]
        self._marks.lower(min((due_at for _, due_at in going_on), default=None))
        self._came(going_on, now=now)
        return recorded

    def _came(self, rows: Sequence[tuple[bytes, int]], *, now: int) -> None:
        """These became ready by a call that began at `now`, and is through."""
        took_ms = 0 if self._inner.clock is None else self._inner.clock() - now
        self._late_rows.ended(self._clock() - took_ms / 1000, rows, now=now)

    async def _tell(self, ids: list[bytes], due_by: int) -> None:
        await self._commit()
        self._note(ids, due_by)

    def _note(self, ids: Iterable[bytes], due_by: int) -> None:
        if self._tells:
            self._strays.update((row.id, None) for row in self._ready(ids) if row.due_at <= due_by)

    def _ready(self, ids: Iterable[bytes]) -> list[Row]:
        rows = (self._inner.book.rows.get(id) for id in ids)
        return [row for row in rows if row is not None and row.holder is None and row.parked is None]

    def _lower(self, ids: Sequence[bytes]) -> None:
        """To the earliest of these rows that are free now."""
        self._marks.lower(min((row.due_at for row in self._ready(ids)), default=None))
