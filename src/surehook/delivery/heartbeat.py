"""The lease: a node lives as long as it beats, and nobody's wall clock has a say in it.

Every second a node raises its counter in the ledger and reads everybody's. Its own lease ends fifteen seconds
after the *start* of its last committed beat, on its own boot-time clock; a request may begin only while five
are left. Another node is judged dead when its counter stood still through fifteen seconds of our own unbroken
beats: a gap of more than three seconds in those starts every count anew, so that neither a ledger that was
away nor our own freeze evicts anybody; and the eviction asks once more whether it stands still, since a node may wake up and
beat, and send on that lease, between the two. A freeze of ours cannot outlive the judgement either: the lease we
wake up with is over before the others' count is.

A node of our own host need not be waited for: when it misses a few beats and its process no longer runs, it is
dead, and nothing of it can still be on its way.
"""

from __future__ import annotations

from surehook.delivery.evictions import Evictions
from surehook.delivery.ledger_clock import LedgerClock
from surehook.delivery.node import Host, Node
from surehook.delivery.outage import Outage
from surehook.delivery.pausing import Pausing
from surehook.delivery.settings import EngineSettings
from surehook.delivery.staleness import Staleness
from surehook.ports.ledger import Ledger

QUIET_S = 1.0  # a node of our host that has not beaten for so long is looked for, this often


class Heartbeat:
    """Beats, and says who has stopped."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: LedgerClock,
        settings: EngineSettings,
        sole: bool,
        node: Node,
        host: Host,
        evictions: Evictions,
        outage: Outage,
        pausing: Pausing,
        staleness: Staleness,
    ) -> None:
        """`sole`: no other process can have changed the configuration."""
        self._ledger = ledger
        self._clock = clock
        self._settings = settings
        self._sole = sole
        self._node = node
        self._host = host
        self._evictions = evictions
        self._outage = outage
        self._pausing = pausing
        self._staleness = staleness
        self._looked_at = 0.0
        self._counter = 0
        self._last_beat = 0.0
        self._seen: dict[bytes, tuple[int, float]] = {}  # node → counter, and when we first saw it

    def restart(self) -> None:
        """A new node begins: no counts."""
        self._counter = 0
        self._seen.clear()

    async def beat(self) -> None:
        """One beat and one look around."""
        started = self._clock.boot()
        self._counter += 1
        counters = await self._ledger.beat(self._node.id, self._counter, now=self._clock.now())
        ended = self._clock.boot()
        if ended - self._last_beat > self._settings.beat_gap_s:
            self._seen.clear()
        self._last_beat = started
        self._node.beaten(started, lease_s=self._settings.lease_s)
        await self.ask_time()
        self._judge(counters, ended)
        self._outage.answered()
        if not self._sole:
            self._staleness.soon()
        self._pausing.look()
        await self._look_for_quiet(ended)

    async def ask_time(self) -> None:
        """Ask the ledger for its time."""
        asked = self._clock.boot()
        told = await self._ledger.time()
        self._clock.learn(told, asked=asked, heard=self._clock.boot())

    def _judge(self, counters: dict[bytes, int], at: float) -> None:
        silent: dict[bytes, int] = {}
        for node, counter in counters.items():
            if self._node.is_still(node):
                continue
            known = self._seen.get(node)
            if known is None or known[0] != counter:
                self._seen[node] = (counter, at)
            elif at - known[1] >= self._settings.lease_s:
                silent[node] = counter
        for node in [node for node in self._seen if node not in counters]:
            del self._seen[node]
        if silent:
            self._evictions.begin(list(silent), silent)

    async def _look_for_quiet(self, at: float) -> None:
        """Nodes of our own host whose process is gone."""
        quiet = {node for node, (_, since) in self._seen.items() if at - since >= QUIET_S}
        if not quiet or at - self._looked_at < QUIET_S:
            return
        self._looked_at = at
        gone = [
            node.id for node in await self._ledger.nodes() if node.id in quiet and self._host.is_gone(node)
        ]
        if gone:
            self._evictions.begin(gone, {})

    async def run(self) -> None:
        """Beat for ever. While the ledger is away the lease runs down, and sending stops by itself before it ends."""
        while True:
            await self._clock.sleep(self._settings.beat_s)
            await self.beat()
