"""All that a node looks at from time to time, each purpose with its pace (`upkeep.py` says how late each is).

configuration   was it changed by another process?
breakers        did they change elsewhere, where nodes share no health? Has the ledger what all of them know, where they do?
parked          which endpoints have parked work that may go on?
ageing          is any of it past its age?
orphans         … or of an endpoint that was deleted, as is what went on since the last look?
held            does the ledger hold rows for this node that memory has forgotten?
overdue         is a delivery late enough to be told of?
unfinalized     is a receiver silent for too long?
counts          how much waits where, for metrics, and is every lane served?
retention       what is old enough to be forgotten?
lists           what has come that lists find more quickly by an index?
"""

from __future__ import annotations

from collections.abc import Sequence

from surehook.delivery.ageing import Ageing
from surehook.delivery.breaker_changes import BreakerChanges
from surehook.delivery.cluster_health import ClusterHealth
from surehook.delivery.delivery_notices import DeliveryNotices
from surehook.delivery.directory import Directory
from surehook.delivery.endings import Endings
from surehook.delivery.lease_reconciler import LeaseReconciler
from surehook.delivery.loading import Loader
from surehook.delivery.managing import WholeLedger
from surehook.delivery.node import Node
from surehook.delivery.notices import Notices
from surehook.delivery.overdue import Overdue
from surehook.delivery.prune import REST_S, Prune
from surehook.delivery.settings import EngineSettings
from surehook.delivery.unfinalized import Unfinalized
from surehook.delivery.unknown_endpoints import UnknownEndpoints
from surehook.delivery.unpark import Unpark
from surehook.delivery.unserved import Unserved
from surehook.delivery.upkeep import Upkeep
from surehook.delivery.watch import DeliveryCounts
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy
from surehook.ports.reading import LaneCount
from surehook.ports.telemetry import Telemetry

# Unfinished deliveries that are counted for who asks: some 25 ms of CPU. Told by rows, not by how long a count took.
COUNTED_AT_ONCE = 100_000
LISTS_S = 5.0  # thousands of rows, at most, that lists have to walk


class Looks:
    """Ties the purposes to the parts that do the work. `shared`: other nodes are on this ledger; `health` is what all
    of them know together, if they do."""

    def __init__(
        self,
        *,
        ledger: WholeLedger,
        clock: Clock,
        entropy: Entropy,
        settings: EngineSettings,
        telemetry: Telemetry,
        shared: bool,
        node: Node,
        directory: Directory,
        loader: Loader,
        endings: Endings,
        notices: Notices,
        watch: DeliveryCounts,
        telling: DeliveryNotices,
        unpark: Unpark,
        unknown_endpoints: UnknownEndpoints,
        reconciler: LeaseReconciler,
        breakers: BreakerChanges,
        health: ClusterHealth | None,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._settings = settings
        self._shared = shared
        self._node = node
        self._loader = loader
        self._watch = watch
        self._unpark = unpark
        self._unknown_endpoints = unknown_endpoints
        self._reconciler = reconciler
        self._breakers = breakers
        self._health = health
        self.ageing = Ageing(
            ledger=ledger, clock=clock, directory=directory, loader=loader, endings=endings, unpark=unpark,
            telling=telling,
        )  # fmt: skip
        self.overdue = Overdue(ledger=ledger, clock=clock, entropy=entropy, notices=notices)
        self.unfinalized = Unfinalized(ledger=ledger, clock=clock, entropy=entropy, notices=notices)
        self.prune = Prune(ledger=ledger, clock=clock, settings=settings)
        self.unserved = Unserved(telemetry)
        self.lane_counts: Sequence[LaneCount] = ()  # as of the last count
        self.parked_counts: dict[tuple[bytes, str], int] = {}

    def begin(self, upkeep: Upkeep) -> None:
        """Look at all of it from now on."""
        settings, look_s = self._settings, self._settings.look_s
        upkeep.add("configuration", look_s, self._loader.reload)
        if settings.lanes:
            if self._shared:
                upkeep.add("breakers", look_s, self._learn_breakers)
            upkeep.add("parked", look_s, self._unpark.look)
            upkeep.add("ageing", look_s, self.ageing.lap, left=self.ageing.rests_since)
            upkeep.add("orphans", look_s, self._end_orphans)
        else:
            upkeep.add("orphans", look_s, self._unknown_endpoints.end_noted)
        upkeep.add("held", look_s, self._reconciler.compare)
        upkeep.add("overdue", look_s, self.overdue.look)
        upkeep.add("unfinalized", look_s, self.unfinalized.look)
        # Ten million waiting rows take seconds to count: whoever starts claims meanwhile.
        upkeep.add("counts", settings.count_s, self.count, at_once=True)
        upkeep.add("retention", settings.prune_s, self.prune.round)
        upkeep.add("lists", LISTS_S, self._index_lists)

    async def count(self) -> None:
        """Count what waits in the ledger, for metrics."""
        now = self._clock.now()
        self.lane_counts = await self._ledger.lane_counts(now=now)
        self.unserved.look(self.lane_counts, now=now)
        await self._keep_notices(now)
        self.parked_counts = await self._ledger.parked_counts()

    async def lanes_now(self) -> Sequence[LaneCount]:
        """Count of waiting deliveries by lane, made now; beyond `COUNTED_AT_ONCE` rows as of the last count, for
        which nobody waits."""
        if sum(lane.rows for lane in self.lane_counts) > COUNTED_AT_ONCE:
            return self.lane_counts
        return await self._ledger.lane_counts(now=self._clock.now())

    async def parked_now(self) -> dict[tuple[bytes, str], int]:
        """Count of parked deliveries by endpoint and reason: likewise."""
        if sum(self.parked_counts.values()) > COUNTED_AT_ONCE:
            return self.parked_counts
        return await self._ledger.parked_counts()

    async def _keep_notices(self, now: int) -> None:
        """Of what the count found. Where the ledger does not answer, the next count tries again."""
        notices = self.unserved.notices
        if notices:
            await self._ledger.record(
                [], node=self._node.id, health=[], breakers=[], notices=notices, now=now
            )
            for notice in notices:
                self._watch.noticed(notice.kind)
            notices.clear()

    async def _index_lists(self) -> None:
        while await self._ledger.index_lists():
            await self._clock.sleep(REST_S)

    async def _end_orphans(self) -> None:
        await self._unknown_endpoints.end_returned()
        await self._unknown_endpoints.end_parked(self._unpark.groups)

    async def _learn_breakers(self) -> None:
        if self._health is None or self._health.is_away:
            await self._breakers.look()
        else:
            await self._breakers.amend()
