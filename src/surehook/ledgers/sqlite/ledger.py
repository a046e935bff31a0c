"""The ledger: one object for the ports. Each method picks the work and the worker that runs it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from surehook.core.errors import LedgerError
from surehook.core.model import (
    BreakerRow,
    Delivery,
    EndpointHealth,
    Lane,
    NodeRow,
    Notice,
    Settled,
)
from surehook.core.receipt_message import Said
from surehook.ledgers.common.registry import RegistryMethods
from surehook.ledgers.sqlite import accept, backup, blocks, claim, endings, others, receipts, record
from surehook.ledgers.sqlite import nodes as nodes_
from surehook.ledgers.sqlite.counts import SqliteCounts
from surehook.ledgers.sqlite.driver import Driver
from surehook.ledgers.sqlite.file import FLOOR_BYTES
from surehook.ledgers.sqlite.prune import SqlitePruning
from surehook.ledgers.sqlite.reading import SqliteReading
from surehook.ports.ledger import (
    ANY_SIZE,
    NONE_KEPT,
    AcceptResult,
    AgedGroup,
    AgedPage,
    ClaimedIds,
    Eviction,
    Incoming,
    ParkedGroup,
    Recorded,
    Skip,
)
from surehook.ports.receipts import PendingReceipt, ReceiptResult

if TYPE_CHECKING:
    from surehook.ports.ledger import Ledger
    from surehook.ports.reading import LedgerReading
    from surehook.ports.registry import Registry


# With so many rows, 2 to 3 ms of a transaction, other waiting work goes first.
LARGE_FAN_OUT = 256


class SqliteLedger(SqliteReading, RegistryMethods):
    """The ledger in one SQLite file. `SqliteSessions` explains the arguments."""

    def __init__(
        self,
        path: str,
        *,
        inline: bool = False,
        driver: Driver | None = None,
        disk_floor_bytes: int = FLOOR_BYTES,
        beside: str | None = None,
    ) -> None:
        super().__init__(path, inline=inline, driver=driver, disk_floor_bytes=disk_floor_bytes, beside=beside)
        self._counts = SqliteCounts(keeps=not inline)
        self._others = others.SqliteOthers()
        self._pruning = SqlitePruning()
        self._blocks = blocks.Blocks()
        self._endpoint_walks = endings.SqliteEndpointWalks()

    # -- the life of a node -----------------------------------------------------------------------------

    async def enter(self, node: NodeRow, *, now: int) -> None:
        await self._write(nodes_.enter, node, now=now)

    async def beat(self, node: bytes, counter: int, *, now: int) -> dict[bytes, int]:
        return await self._join(nodes_.beat, node, counter, now=now)

    async def time(self) -> int | None:
        # It is in this process: our clock is its clock.
        return None

    async def nodes(self) -> list[NodeRow]:
        return await self._read(nodes_.nodes)

    async def evict(
        self, nodes: Sequence[bytes], *, now: int, judged: Mapping[bytes, int] | None = None
    ) -> Eviction:
        evict = self._others.lowering(nodes_.evict, others.LONG_AGO)
        return await self._write(evict, nodes, now=now, judged=judged or {})

    async def free(self, ids: Sequence[bytes], *, node: bytes, now: int) -> None:
        await self._write(self._others.lowering(nodes_.free, others.LONG_AGO), ids, node=node, now=now)

    async def held_count(self, node: bytes) -> int:
        return await self._read(nodes_.held_count, node)

    async def held(self, node: bytes, *, limit: int) -> list[bytes]:
        return await self._read(nodes_.held, node, limit=limit)

    # -- the hot path ----------------------------------------------------------------------------

    async def accept(
        self, batch: Sequence[Incoming], *, node: bytes, version: int, now: int, is_quick: bool = False
    ) -> AcceptResult:
        # Large events come in batches of their own (`delivery/accept.py`), so the first item decides.
        is_large = batch and len(batch[0].deliveries) >= LARGE_FAN_OUT
        add = self._add_later if is_large else self._add_quickly if is_quick else self._add
        first_due = min([item.deliveries[0].due_at for item in batch if item.deliveries], default=None)
        work = self._others.lowering(accept.accept, first_due)
        return await add(work, batch, node=node, version=version, now=now)

    async def claim(
        self, lane: Lane, *, node: bytes, limit: int, due_by: int, now: int, size: int = ANY_SIZE
    ) -> list[Delivery]:
        return await self._join(
            self._others.claim_all, lane, node=node, limit=limit, due_by=due_by, now=now, size=size
        )

    async def claim_others(
        self,
        lane: Lane,
        *,
        node: bytes,
        limit: int,
        due_by: int,
        now: int,
        skip: Skip,
        size: int = ANY_SIZE,
        fresh: bool = False,
    ) -> list[Delivery]:
        for look in range(others.LOOKS):
            try:
                # By itself: positions that it has moved are no rows, which a joint transaction that fails would take back.
                leased, goes_on = await self._write(
                    self._others.claim, lane,
                    node=node, limit=limit, due_by=due_by, now=now, skip=skip, size=size, fresh=fresh,
                    goes_on=look > 0,
                )  # fmt: skip
            except LedgerError:
                self._others.failed()
                raise
            if not goes_on:
                break
        return leased

    async def claim_ids(
        self, ids: Sequence[bytes], *, node: bytes, now: int, size: int = ANY_SIZE
    ) -> ClaimedIds:
        return await self._join(claim.claim_ids, ids, node=node, now=now, size=size)

    async def unpark(
        self,
        endpoint: bytes,
        reasons: Sequence[str],
        *,
        node: bytes,
        limit: int,
        now: int,
        size: int = ANY_SIZE,
        restart: bool = False,
    ) -> list[Delivery]:
        return await self._join(
            claim.unpark, endpoint, reasons, node=node, limit=limit, now=now, size=size, restart=restart
        )

    async def park(self, deliveries: Sequence[Delivery], reason: str, *, node: bytes, now: int) -> None:
        write = self._later if len(deliveries) >= LARGE_FAN_OUT else self._join
        await write(claim.park, deliveries, reason, node=node, now=now)

    async def release(self, deliveries: Sequence[Delivery], *, node: bytes, now: int) -> None:
        first_due = min([delivery.due_at for delivery in deliveries], default=None)
        await self._join(self._others.lowering(claim.release, first_due), deliveries, node=node, now=now)

    async def record(
        self,
        settled: Sequence[Settled],
        *,
        node: bytes,
        health: Sequence[EndpointHealth],
        breakers: Sequence[BreakerRow],
        notices: Sequence[Notice],
        now: int,
    ) -> Recorded:
        going_on = [one.due_at for one in settled if one.end is None and one.parked is None]
        work = self._others.lowering(record.record, min(going_on, default=None))
        return await self._join(
            work, settled, is_low=self._file.is_low,
            node=node, health=health, breakers=breakers, notices=notices, now=now,
        )  # fmt: skip

    async def breakers(self, asked: Sequence[tuple[str, str]] = ()) -> list[BreakerRow]:
        return await self._read(record.breakers, asked)

    # -- waiting and ending -----------------------------------------------------------------------------

    async def next_due(self, lane: Lane) -> int | None:
        return await self._read(claim.next_due, lane)

    async def parked_groups(self) -> list[ParkedGroup]:
        return await self._read(endings.parked_groups)

    async def parked_aged(self, groups: Sequence[AgedGroup], *, limit: int) -> AgedPage:
        return await self._read(endings.parked_aged, groups, limit=limit)

    async def overdue(self, *, now: int, limit: int) -> list[Delivery]:
        return await self._read(endings.overdue, now=now, limit=limit)

    async def mark_overdue(
        self, deliveries: Sequence[Delivery], notices: Sequence[Notice], *, now: int
    ) -> list[bytes]:
        return await self._later(endings.mark_overdue, deliveries, notices, now=now)

    async def end(
        self,
        deliveries: Sequence[Delivery],
        *,
        state: str,
        reason: str | None,
        notices: Sequence[Notice],
        now: int,
        request_headers: Mapping[bytes, bytes] = NONE_KEPT,
    ) -> list[bytes]:
        return await self._later(
            endings.end, deliveries, state=state, reason=reason, notices=notices, now=now,
            request_headers=request_headers,
        )  # fmt: skip

    async def end_endpoint(self, endpoint: bytes, *, reason: str, limit: int, now: int) -> int:
        step = self._endpoint_walks.step
        while True:
            ended = await self._later(step, endpoint, reason=reason, limit=limit, now=now)
            if ended is not None:
                return ended

    async def unheld_endpoints(self, after: bytes) -> tuple[Collection[bytes], bytes | None]:
        return await self._read(endings.unheld_endpoints, after)

    # -- receipts ---------------------------------------------------------------------------------------

    async def apply_receipts(
        self, endpoint: bytes, items: Sequence[Said], *, tenant: str, now: int
    ) -> ReceiptResult:
        return await self._join(receipts.apply_receipts, endpoint, items, tenant=tenant, now=now)

    async def unfinalized(self, *, now: int, limit: int) -> list[PendingReceipt]:
        return await self._read(receipts.unfinalized, now=now, limit=limit)

    async def mark_unfinalized(
        self, awaited: Sequence[PendingReceipt], notices: Sequence[Notice], *, now: int
    ) -> list[bytes]:
        return await self._later(receipts.mark_unfinalized, awaited, notices, now=now)

    # -- upkeep ----------------------------------------------------------------------------------

    async def prune(self, *, events_before: int, bodies_before: int, limit: int, now: int) -> int:
        removed = 0
        while removed < limit:
            count, is_end = await self._later(
                self._pruning.step,
                events_before=events_before,
                bodies_before=bodies_before,
                limit=limit - removed,
                now=now,
            )
            removed += count
            if is_end:
                break
        if removed:
            self._blocks.shrank()
        return removed

    async def index_lists(self) -> bool:
        step = await self._read(self._blocks.look)
        if step is None:
            return False
        await self._write(blocks.keep, step)
        return True

    async def backup(self, path: str) -> None:
        await self._beside(partial(backup.back_up, self._driver, self.path, path))


if TYPE_CHECKING:

    def _is_all_three(ledger: SqliteLedger) -> tuple[Ledger, Registry, LedgerReading]:
        return ledger, ledger, ledger
