"""Freeing what dead nodes hold: their rows are ready for everybody, and nobody here knows of which endpoints they are."""

from __future__ import annotations

from collections.abc import Mapping

from surehook.delivery.claim_looks import ClaimLooks
from surehook.delivery.loops import Loops
from surehook.delivery.peers import Peers
from surehook.delivery.unknown_endpoints import UnknownEndpoints
from surehook.ports.clock import Clock
from surehook.ports.ledger import Ledger
from surehook.ports.telemetry import Telemetry


class Evictions:
    """Evicts nodes in the ledger, and lets everybody look for what that frees."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: Clock,
        telemetry: Telemetry,
        loops: Loops,
        unknown_endpoints: UnknownEndpoints,
        looks: ClaimLooks,
        peers: Peers,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._telemetry = telemetry
        self._loops = loops
        self._unknown_endpoints = unknown_endpoints
        self._looks = looks
        self._peers = peers

    def begin(self, nodes: list[bytes], judged: Mapping[bytes, int]) -> None:
        """Beside the beats, which an eviction of many rows must not hold up."""
        self._loops.do("evict", lambda: self.evict(nodes, judged))

    async def evict(self, nodes: list[bytes], judged: Mapping[bytes, int]) -> None:
        """Free what these nodes hold. `judged`: the counters by which those were judged that were only silent."""
        eviction = await self._ledger.evict(nodes, now=self._clock.now(), judged=judged)
        self._telemetry.fact("nodes.evicted", nodes=len(eviction.nodes), freed=eviction.freed)
        if eviction.nodes:
            self._unknown_endpoints.look_everywhere()  # what those knew is gone with them
        if eviction.freed:
            self._looks.wake()
            self._peers.work()
