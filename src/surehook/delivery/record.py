"""Results into the ledger: they gather for a few milliseconds, then one transaction writes them all.

What was sent and is not yet recorded at a crash is sent again, so the window is short and bounded in rows.
While the ledger cannot be written, results wait and nothing new is sent (`backlog`): an endpoint that
answered must not be asked again only because we could not note its answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from surehook.core import ids, outcome
from surehook.core.breaker import Breaker, Change
from surehook.core.delivery import DeliveryDecision
from surehook.core.errors import LedgerBroken, NodeEvicted
from surehook.core.model import (
    BreakerRow,
    Delivery,
    EndpointHealth,
    Lane,
    Notice,
    RecordedEndpoint,
    Settled,
)
from surehook.delivery.batch import Batches
from surehook.delivery.claim_looks import ClaimLooks
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.endpoint_state import EndpointState
from surehook.delivery.holdings import Holdings
from surehook.delivery.loops import Loops
from surehook.delivery.node import Node
from surehook.delivery.notices import Notices
from surehook.delivery.peers import Peers
from surehook.delivery.plans import Plan
from surehook.delivery.refill import Refill
from surehook.delivery.settings import EngineSettings
from surehook.delivery.staleness import Staleness
from surehook.delivery.watch import DeliveryCounts
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy
from surehook.ports.ledger import Ledger


class FailureTally:
    """One window's word on an endpoint's consecutive failures at its URL, gathered as results come in."""

    __slots__ = ("failures", "limit", "reason", "status", "succeeded", "url")

    def __init__(self, url: str) -> None:
        self.url = url
        self.succeeded = False
        self.failures = 0
        self.limit: int | None = None
        self.status: str | None = None
        self.reason: str | None = None


def disabled(route: EndpointState, change: RecordedEndpoint, now: int) -> Notice:
    """Notice of an endpoint that its failures made inactive; the durable notice is the ledger's."""
    return Notice(
        id=b"", at=now, kind="endpoint.disabled", tenant=route.endpoint.tenant, endpoint=change.endpoint,
        delivery=None, detail=change.why_disabled,
    )  # fmt: skip


class Record:
    """The recorder. `written` is set when a window is in the ledger while sending had stopped."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: Clock,
        entropy: Entropy,
        settings: EngineSettings,
        sole: bool,
        node: Node,
        loops: Loops,
        watch: DeliveryCounts,
        notices: Notices,
        dispatch: Dispatch,
        holdings: Holdings,
        refill: Refill,
        looks: ClaimLooks,
        peers: Peers,
        staleness: Staleness,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._entropy = entropy
        self._sole = sole
        self._node = node
        self._loops = loops
        self._watch = watch
        self._tell_of = notices.tell
        self._dispatch = dispatch
        self._holdings = holdings
        self._refill = refill
        self._looks = looks
        self._peers = peers
        self._staleness = staleness
        self.written = asyncio.Event()
        self._batches: Batches[tuple[EndpointState, Settled]] = Batches(
            self._flush, failed=self._broke, rows=settings.record_rows, window_s=settings.record_window_s
        )
        self._health: dict[EndpointState, FailureTally] = {}
        self._breakers: dict[tuple[str, str], BreakerRow] = {}
        self._untold: list[Notice] = []

    # -- deliver's side ---------------------------------------------------------------------------------

    def put(self, route: EndpointState, settled: Settled, plan: Plan | None = None) -> None:
        """One result, and the policy by which it counts for its endpoint; None where it does not count. A success of an
        endpoint in good standing costs nothing but its place in the line; where other nodes call it as well, only the
        ledger knows of all failures running, so a success is told where they count."""
        if plan is None:
            pass
        elif settled.end == "delivered":
            counts = not self._sole and plan.policy.auto_disable is not None
            if counts or route.failure_count or route in self._health:
                health = self._health_of(route)
                health.succeeded, health.failures = True, 0
            route.failure_count = 0
        elif (
            settled.entry is not None
            and settled.entry.kind == "attempt"
            and settled.entry.error not in outcome.OURS  # our own trouble is never charged to the endpoint
        ):
            health = self._health_of(route)
            health.failures += 1
            route.failure_count += 1
            if plan.policy.auto_disable is not None:
                health.limit = plan.policy.auto_disable.consecutive_failures
        self._batches.put((route, settled))

    def _health_of(self, route: EndpointState) -> FailureTally:
        """This window's; what was gathered at another URL is dropped."""
        health = self._health.get(route)
        if health is None or health.url != route.endpoint.url:
            health = self._health[route] = FailureTally(route.endpoint.url)
        return health

    def put_wrong_lane(self, route: EndpointState, delivery: Delivery) -> None:
        """A held delivery of a lane that another node delivers goes back to the ledger, in that lane, unsent."""
        self._batches.put(
            (
                route,
                Settled(
                    delivery=delivery, entry=None, lane=delivery.lane, number=delivery.attempt,
                    due_at=delivery.due_at, spared=delivery.spared,
                ),
            )
        )  # fmt: skip

    def status_changed(self, route: EndpointState, decision: DeliveryDecision) -> None:
        """The endpoint leaves `active` with this window: 410, or an exhausted delivery under enter_failure."""
        health = self._health_of(route)
        health.status, health.reason = decision.endpoint_status, decision.endpoint_reason
        assert decision.endpoint_status is not None
        route.status = decision.endpoint_status  # at once in memory: nothing more is sent to it

    def breaker_told(self, breaker: Breaker, change: Change, endpoint: bytes) -> None:
        """A breaker changed some time ago: no result of ours need follow that would take it along."""
        self.breaker_changed(breaker, change, endpoint)
        self._batches.nudge()

    def breaker_stands(self, breaker: Breaker) -> None:
        """Write how it stands, and tell nobody: no endpoint has its URL any more, or others have told."""
        self._breakers[breaker.tenant, breaker.key] = breaker.row()
        self._batches.nudge()

    def breaker_changed(self, breaker: Breaker, change: Change, endpoint: bytes) -> None:
        """A breaker changed by a call of the endpoint."""
        self._breakers[breaker.tenant, breaker.key] = breaker.row()
        if change in ("opened", "closed"):
            now = self._clock.now()
            detail = f"{breaker.reason}: {breaker.key}" if change == "opened" else breaker.key
            self._untold.append(
                Notice(
                    id=ids.uuid7(now, self._entropy.bits(10)), at=now, kind=f"breaker.{change}",
                    tenant=breaker.tenant, endpoint=endpoint, delivery=None, detail=detail,
                )
            )  # fmt: skip

    @property
    def backlog(self) -> int:
        return self._batches.weight + self._batches.flushing

    @property
    def is_empty(self) -> bool:
        return self._batches.is_empty

    async def drained(self) -> None:
        await self._batches.drained()

    # -- the ledger's side --------------------------------------------------------------------------------

    async def _flush(self, batch: list[tuple[EndpointState, Settled]]) -> None:
        health, self._health = self._health, {}
        breakers, self._breakers = self._breakers, {}
        notices, self._untold = self._untold, []
        folded = [
            EndpointHealth(route.endpoint.id, h.succeeded, h.failures, h.limit, h.status, h.reason, h.url)  # type: ignore[arg-type]
            for route, h in health.items()
        ]
        settled = [result for _, result in batch]
        node = self._node.id  # whose results they are, however often it is tried
        try:
            answer = await self._loops.persist(
                "record",
                lambda: self._ledger.record(
                    settled, node=node, health=folded, breakers=list(breakers.values()),
                    notices=notices, now=self._clock.now(),
                ),
            )  # fmt: skip
        except NodeEvicted:
            self._unsay(health)
            # What was found out about receivers holds whoever writes it down.
            self._breakers = breakers | self._breakers
            self._untold[:0] = notices
            self._let_go(batch)
            return
        except LedgerBroken:
            return
        self._let_go(batch)
        self._tell(settled, notices, lost=frozenset(answer.lost))
        soonest: dict[Lane, int] = {}
        onward = [(route, result) for route, result in batch if result.end is None]
        for _, result in onward:
            if result.parked is None:
                soonest[result.lane] = min(result.due_at, soonest.get(result.lane, result.due_at))
                self._holdings.rescheduled(result.delivery.endpoint)
        for lane, due_at in soonest.items():
            self._peers.on_rescheduled(lane, due_at)
        for route, result in onward:
            if result.parked is not None:
                route.may_have_parked(result.parked)
                self._refill.wants_work(route)  # it may be called otherwise by now, or elsewhere
        changed = {route.endpoint.id: route for route in health} if answer.changes else {}
        for change in answer.changes:
            route = changed[change.endpoint]
            route.failure_count = change.failure_count
            route.status = change.status
            if change.disabled:
                self._tell_of(disabled(route, change, self._clock.now()))
        if any(change.status != "active" for change in answer.changes):
            self._staleness.changed_by_us()
        self._looks.freed()
        self._refill.let_go()
        if self._dispatch.paused:
            self.written.set()

    def _broke(self, batch: list[tuple[EndpointState, Settled]], error: Exception) -> None:
        self._loops.defect("record", error)

    def forget(self) -> list[tuple[EndpointState, Delivery]]:
        """This node was evicted: what it has not written yet was freed, and may be in hand again when it could be."""
        self._unsay(self._health)
        self._health = {}
        return [(route, result.delivery) for route, result in self._batches.forget()]

    @staticmethod
    def _unsay(health: Iterable[EndpointState]) -> None:
        """Memory took a window's word before the ledger had it, and the ledger never will."""
        for route in health:
            route.status, route.failure_count = route.endpoint.status, route.endpoint.failure_count

    def held_ids(self) -> list[bytes]:
        """Deliveries whose result is not in the ledger yet."""
        return [settled.delivery.id for _, settled in self._batches.items()]

    def _let_go(self, batch: list[tuple[EndpointState, Settled]]) -> None:
        left = [(route, result.delivery) for route, result in batch]
        self._dispatch.memory.let_all_go(left)
        self._holdings.let_go([delivery.id for _, delivery in left])
        for route in dict(left):  # each once, in order
            if route.parked and route.is_low:
                self._refill.wants_work(route)

    def _tell(self, settled: list[Settled], notices: list[Notice], *, lost: frozenset[bytes]) -> None:
        """Count and tell what the transaction wrote; what was no longer ours is for others to tell."""
        for notice in notices:
            self._tell_of(notice)
        took_ms: list[int] = []
        for result in settled:
            if lost and result.delivery.id in lost:
                continue
            if result.end == "delivered":
                entry = result.entry
                assert entry is not None, "a call delivered it"
                took_ms.append(entry.started_at + (entry.total_us or 0) // 1000 - result.delivery.born_at)
            elif result.end is not None:
                self._watch.finished(result.end, 1)
            for notice in result.notices:
                self._tell_of(notice)
        self._watch.delivered(took_ms)
