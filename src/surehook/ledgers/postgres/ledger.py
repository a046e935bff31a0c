"""The ledger: one object for the ports. Each method picks the work and the sessions it runs on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from surehook.core import ids as ids_
from surehook.core.errors import CommitUnknown, LedgerUnavailable, Problem
from surehook.core.model import BreakerRow, Delivery, EndpointHealth, Lane, NodeRow, Notice, Settled
from surehook.core.receipt_message import Said
from surehook.ledgers.common.registry import RegistryMethods
from surehook.ledgers.postgres import (
    breakers,
    claim,
    endings,
    lookback,
    marks,
    others,
    receipts,
    record,
    strays,
)
from surehook.ledgers.postgres import handing as handing_
from surehook.ledgers.postgres import nodes as nodes_
from surehook.ledgers.postgres.accept import Accepting
from surehook.ledgers.postgres.counts import PostgresCounts
from surehook.ledgers.postgres.housekeeping import Housekeeper
from surehook.ledgers.postgres.reading import PostgresReading
from surehook.ledgers.postgres.sessions import Work
from surehook.ports.handoff import LaneMarks
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
    from surehook.ports.handoff import Handing
    from surehook.ports.ledger import Ledger
    from surehook.ports.reading import LedgerReading
    from surehook.ports.registry import Registry

P = ParamSpec("P")
T = TypeVar("T")


class PostgresLedger(PostgresReading, RegistryMethods):
    """The ledger in PostgreSQL. `PostgresSessions` explains the arguments."""

    def __init__(
        self,
        url: str,
        *,
        writers: int = 2,
        workers: int = 2,
        listers: int = 2,
        clock: Callable[[], float] = lookback.SECONDS,
    ) -> None:
        super().__init__(url, writers=writers, workers=workers, listers=listers, clock=clock)
        self._counts = PostgresCounts()
        self._housekeeper = Housekeeper()
        self._accept = Accepting()
        self._marks = marks.Marks(clock)
        self._parked = claim.Parked(clock)
        self._strays = strays.Strays(marks.BEGINNING, self._lower)
        self._others = others.PostgresOthers(self._strays)
        self._held_from = nodes_.HeldFrom()
        self._sweeping = handing_.Sweeping(clock)
        self._endpoint_walks = endings.PostgresEndpointWalks()

    # -- the life of a node -----------------------------------------------------------------------------

    async def enter(self, node: NodeRow, *, now: int) -> None:
        await self._surely(nodes_.enter, node, now=now)
        self._held_from.entered(node.id)

    async def beat(self, node: bytes, counter: int, *, now: int) -> dict[bytes, int]:
        return await self._until_known(self._beating, nodes_.beat, node, counter, now=now)

    async def time(self) -> int | None:
        return await self._with(self._beating, nodes_.time)

    async def nodes(self) -> list[NodeRow]:
        return await self._write(nodes_.nodes)

    async def evict(
        self, nodes: Sequence[bytes], *, now: int, judged: Mapping[bytes, int] | None = None
    ) -> Eviction:
        eviction, due_at = await self._until_known(
            self._keeping, nodes_.evict, nodes, now=now, judged=judged or {}
        )
        self._marks.lower(due_at)
        return eviction

    async def free(self, ids: Sequence[bytes], *, node: bytes, now: int) -> None:
        self._marks.lower(await self._surely(nodes_.free, ids, node=node, now=now))

    async def held_count(self, node: bytes) -> int:
        return await self._write(self._held_from.count, node)

    async def held(self, node: bytes, *, limit: int) -> list[bytes]:
        return await self._write(self._held_from.look, node, limit=limit)

    # -- the hot path ----------------------------------------------------------------------------

    async def accept(
        self, batch: Sequence[Incoming], *, node: bytes, version: int, now: int, is_quick: bool = False
    ) -> AcceptResult:
        if batch:
            self._held_from.leased(node, min([item.event.id for item in batch])[: ids_.SHARED_BYTES])
        began = self._late_rows.begin()
        result = await self._with(
            self._accepting, self._accept.accept, batch, node=node, version=version, now=now
        )
        ready = [
            (delivery.id, delivery.due_at)
            for item in batch
            for delivery in item.deliveries
            if not delivery.held and delivery.parked is None
        ]
        self._late_rows.ended(began, ready, now=now)
        return result

    async def claim(
        self, lane: Lane, *, node: bytes, limit: int, due_by: int, now: int, size: int = ANY_SIZE
    ) -> list[Delivery]:
        leased = await self._lease(
            node, claim.claim, self._marks, self._strays, lane,
            node=node, limit=limit, due_by=due_by, now=now, size=size,
        )  # fmt: skip
        self._others.passes.taken(lane, self._marks.at(lane))
        return leased

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
        return await self._lease(
            node, self._others.claim, lane,
            node=node, limit=limit, due_by=due_by, now=now, skip=skip, size=size, fresh=fresh,
        )  # fmt: skip

    async def claim_ids(
        self, ids: Sequence[bytes], *, node: bytes, now: int, size: int = ANY_SIZE
    ) -> ClaimedIds:
        claimed = await self._leasing(claim.claim_ids, ids, node=node, now=now, size=size)
        self._leased(node, claimed.rows)
        return claimed

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
        return await self._lease(
            node, self._parked.unpark, endpoint, reasons,
            node=node, limit=limit, now=now, size=size, restart=restart,
        )  # fmt: skip

    def _lower(self, lane: Lane, due_at: int) -> None:
        """Lower all positions of a lane: a transaction has ended that was under way at a look, `LATE_MS` after this instant."""
        self._marks.lower(due_at)
        self._others.passes.ended(due_at)

    async def _lease(
        self, by: bytes, work: Work[P, list[Delivery]], *args: P.args, **kwargs: P.kwargs
    ) -> list[Delivery]:
        leased = await self._leasing(work, *args, **kwargs)
        self._leased(by, leased)
        return leased

    async def _leasing(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await self._once(work, *args, **kwargs)
        except LedgerUnavailable:
            self._held_from.lost()
            raise

    def _leased(self, by: bytes, leased: Sequence[Delivery]) -> None:
        if leased:
            self._held_from.leased(by, min([delivery.id for delivery in leased]))

    async def park(self, deliveries: Sequence[Delivery], reason: str, *, node: bytes, now: int) -> None:
        await self._surely(self._parked.park, deliveries, reason, node=node, now=now)

    async def release(self, deliveries: Sequence[Delivery], *, node: bytes, now: int) -> None:
        began = self._late_rows.begin()
        await self._surely(claim.release, deliveries, node=node, now=now)
        self._marks.lower(min((delivery.due_at for delivery in deliveries), default=None))
        soon = [(delivery.id, delivery.due_at) for delivery in deliveries if delivery.due_at > now]
        self._late_rows.ended(began, soon, now=now)

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
        began = self._late_rows.begin()
        recorded = await self._with(
            self._recording, record.record, settled,
            node=node, health=health, breakers=breakers, notices=notices, now=now,
        )  # fmt: skip
        going_on = [
            (one.delivery.id, one.due_at) for one in settled if one.end is None and one.parked is None
        ]
        if going_on:
            self._marks.lower(min([due_at for _, due_at in going_on]))
            self._late_rows.ended(began, going_on, now=now)
        return recorded

    async def breakers(self, asked: Sequence[tuple[str, str]] = ()) -> list[BreakerRow]:
        return await self._write(breakers.breakers, asked)

    # -- waiting and ending -----------------------------------------------------------------------------

    async def next_due(self, lane: Lane) -> int | None:
        return await self._write(claim.next_due, self._marks, lane)

    async def parked_groups(self) -> list[ParkedGroup]:
        return await self._write(endings.parked_groups)

    async def parked_aged(self, groups: Sequence[AgedGroup], *, limit: int) -> AgedPage:
        return await self._write(endings.parked_aged, groups, limit=limit)

    async def overdue(self, *, now: int, limit: int) -> list[Delivery]:
        return await self._write(endings.overdue, now=now, limit=limit)

    async def mark_overdue(
        self, deliveries: Sequence[Delivery], notices: Sequence[Notice], *, now: int
    ) -> list[bytes]:
        return await self._surely(endings.mark_overdue, deliveries, notices, now=now)

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
        said: dict[str, Any] = {
            "state": state, "reason": reason, "notices": notices, "now": now, "request_headers": request_headers,
        }  # fmt: skip
        try:
            return await self._write(endings.end, deliveries, **said)
        except CommitUnknown:
            return await self._surely(endings.end, deliveries, **said, again=True)

    async def end_endpoint(self, endpoint: bytes, *, reason: str, limit: int, now: int) -> int:
        step = self._endpoint_walks.step
        while True:
            ended = await self._surely(step, endpoint, reason=reason, limit=limit, now=now)
            if ended is not None:
                return ended

    async def unheld_endpoints(self, after: bytes) -> tuple[Collection[bytes], bytes | None]:
        return await self._read(endings.unheld_endpoints, after)

    # -- receipts ---------------------------------------------------------------------------------------

    async def apply_receipts(
        self, endpoint: bytes, items: Sequence[Said], *, tenant: str, now: int
    ) -> ReceiptResult:
        return await self._surely(receipts.apply_receipts, endpoint, items, tenant=tenant, now=now)

    async def unfinalized(self, *, now: int, limit: int) -> list[PendingReceipt]:
        return await self._write(receipts.unfinalized, now=now, limit=limit)

    async def mark_unfinalized(
        self, awaited: Sequence[PendingReceipt], notices: Sequence[Notice], *, now: int
    ) -> list[bytes]:
        return await self._surely(receipts.mark_unfinalized, awaited, notices, now=now)

    # -- upkeep -----------------------------------------------------------------------------------------

    async def prune(self, *, events_before: int, bodies_before: int, limit: int, now: int) -> int:
        async with self._pruning.lend() as session:
            return await self._housekeeper.prune(
                session, events_before=events_before, bodies_before=bodies_before, limit=limit, now=now
            )

    async def index_lists(self) -> bool:
        # Days are indexed once they are over, with retention.
        return False

    async def backup(self, path: str) -> None:
        raise Problem(
            "backup_unsupported",
            "PostgreSQL has its own backups, of one instant and while work goes on",
            hint="pg_dump --format=custom, or pg_basebackup with WAL archiving for any point in time",
            status=409,
        )

    # -- handing over to a broker -----------------------------------------------------------------------

    async def prepare_handing(self) -> None:
        await self._keep(handing_.prepare)

    async def identity(self) -> str:
        return await self._write(handing_.identity)

    async def lane_marks(self, lane: Lane) -> LaneMarks:
        return await self._write(handing_.lane_marks, lane)

    async def hand_over(
        self, lane: Lane, *, node: bytes, limit: int, due_by: int, now: int
    ) -> list[bytes] | None:
        return await self._once(
            self._sweeping.hand_over, lane, node=node, limit=limit, due_by=due_by, now=now
        )

    async def end_epoch(self, lane: Lane, *, node: bytes, now: int) -> int | None:
        return await self._once(handing_.end_epoch, lane, node=node)

    async def record_watermark(self, lane: Lane, epoch: int, *, node: bytes, now: int) -> None:
        await self._surely(handing_.record_watermark, lane, epoch, node=node)

    async def resign(self, lane: Lane, *, node: bytes, now: int) -> None:
        await self._surely(handing_.resign, lane, node=node)


if TYPE_CHECKING:

    def _keeps_the_ports(ledger: PostgresLedger) -> tuple[Ledger, Registry, LedgerReading, Handing]:
        return ledger, ledger, ledger, ledger
