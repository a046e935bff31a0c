"""Entering the ledger's nodes, and beginning again after others have judged this one dead."""

from __future__ import annotations

from surehook.core import ids
from surehook.delivery.claim_looks import ClaimLooks
from surehook.delivery.evictions import Evictions
from surehook.delivery.heartbeat import Heartbeat
from surehook.delivery.node import Host, Node
from surehook.delivery.pausing import Pausing
from surehook.delivery.shutdown import Shutdown
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy
from surehook.ports.ledger import Ledger
from surehook.ports.telemetry import Telemetry


class Membership:
    """This process's lives, one after another."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: Clock,
        entropy: Entropy,
        telemetry: Telemetry,
        host: Host,
        sole: bool,
        node: Node,
        heartbeat: Heartbeat,
        evictions: Evictions,
        shutdown: Shutdown,
        pausing: Pausing,
        looks: ClaimLooks,
    ) -> None:
        """`sole`: the ledger admits one process at a time, so every other node in it is dead (SQLite)."""
        self._ledger = ledger
        self._clock = clock
        self._entropy = entropy
        self._telemetry = telemetry
        self._host = host
        self._sole = sole
        self._node = node
        self._heartbeat = heartbeat
        self._evictions = evictions
        self._shutdown = shutdown
        self._pausing = pausing
        self._looks = looks

    async def enter(self) -> None:
        """Begin a life: a row in the ledger, the eviction of those who are seen to be dead, a first beat.

        Until the ledger has the new id, and from before anything is waited for, this node goes by an id that nobody ever
        enters. By it is told what was asked in a former life and is heard from now on; and what is asked in between, and
        refused, speaks of that id, however late it is heard, and not of the life that has begun."""
        former = self._node.id
        self._node.goes_by(self._new_id())
        await self._heartbeat.ask_time()
        now = self._clock.now()
        entering = self._host.this_node(self._new_id(), now=now)
        others = await self._ledger.nodes()
        try:
            await self._ledger.enter(entering, now=now)
        finally:
            self._node.goes_by(entering.id)  # also where it is in doubt: the next beat tells
        dead = [o.id for o in others if self._sole or o.id == former or self._host.is_gone(o)]
        if dead:
            await self._evictions.evict(dead, {})
        await self._heartbeat.beat()

    async def run(self) -> None:
        """Answer each eviction of this node, for ever: forget what others have now, and enter under a new id. A node that is
        leaving has nothing left to hand back."""
        node = self._node
        while True:
            await node.evicted.wait()
            try:
                if node.running:
                    await self._begin_again()
                else:
                    self._shutdown.forget()
            finally:
                node.evicted.clear()

    async def _begin_again(self) -> None:
        self._telemetry.fact("node.evicted", node=ids.text(ids.NODE, self._node.id))
        self._shutdown.forget()
        self._heartbeat.restart()
        await self.enter()
        self._pausing.resume()
        self._looks.wake()

    def _new_id(self) -> bytes:
        return ids.uuid7(self._clock.now(), self._entropy.bits(10))
