"""Leases whose answer was lost: held in the ledger, and known to nobody here. They come back within about a second.

When the connection goes during the commit of a claim, the rows of that claim may be this node's, and it cannot
say which: asked again, a claim leases others. So the ledger and memory are compared as soon as there is reason to,
and a few times more, since the server may still be at work on what we have given up. What that misses gives the
ten-second look (`compare`) a reason.

Two looks make sure, and time is no part of it. A row is lost when both saw it held and memory had it at
neither, while every call that was leasing rows at the first had ended before the second, and nothing let the
row go meanwhile. Were it in the hands of such a call, that call would have brought it; were it leased anew,
it was let go before. It is freed as an eviction would free it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from surehook.core.errors import LedgerUnavailable, NodeEvicted
from surehook.delivery.claim_looks import ClaimLooks
from surehook.delivery.holdings import Holdings
from surehook.delivery.node import Node
from surehook.delivery.peers import Peers
from surehook.delivery.settings import EngineSettings
from surehook.delivery.unknown_endpoints import UnknownEndpoints
from surehook.ports.clock import Clock
from surehook.ports.ledger import Ledger

# Pauses before the looks that follow a loss. What the server still does for a connection that is gone ends within
# its own deadline; almost always that is milliseconds, and beyond these the ten-second look begins them anew.
LOOKS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
FREED_ROWS = 1_000  # in one transaction: each gets a line of its history
AWAY_S = 0.5  # between tries while the ledger does not answer


class Holder(Protocol):
    """A part in which deliveries are: under way, waiting, or on their way into the ledger."""

    def held_ids(self) -> Iterable[bytes]: ...


class LeaseReconciler:
    """One node's search. `holders` are all parts in which deliveries can be."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: Clock,
        settings: EngineSettings,
        node: Node,
        holdings: Holdings,
        holders: Sequence[Holder],
        unknown_endpoints: UnknownEndpoints,
        looks: ClaimLooks,
        peers: Peers,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._settings = settings
        self._node = node
        self._holdings = holdings
        self._holders = (*holders, holdings)
        self._unknown_endpoints = unknown_endpoints
        self._looks = looks
        self._peers = peers
        self._unknown: set[bytes] = set()  # to memory, at the last ten-second look
        self.released = 0

    def in_memory(self) -> set[bytes]:
        """The ids of deliveries that are being sent, wait for it, or are on their way into the ledger."""
        known: set[bytes] = set()
        for holder in self._holders:
            known.update(holder.held_ids())
        return known

    async def compare(self) -> None:
        """Begin a search where the ledger goes on holding rows for this node that memory does not know."""
        if await self._ledger.held_count(self._node.id) == 0:
            return
        held = await self._held(self._node.id)
        before, self._unknown = self._unknown, set(held).difference(self.in_memory())
        if before & self._unknown:  # lost, or twice on the way to us or from us
            self._holdings.suspect()

    async def run(self) -> None:
        """Look when there is reason to, for ever."""
        suspected = self._holdings.suspected
        while True:
            await suspected.wait()
            suspected.clear()
            for pause_s in LOOKS_S:
                await self._clock.sleep(pause_s)
                while not await self._answered():
                    await self._clock.sleep(AWAY_S)
                if suspected.is_set():
                    break  # another loss: all over again
            self._holdings.none_missing()

    async def _answered(self) -> bool:
        try:
            await self._look()
        except NodeEvicted:
            self._holdings.none_missing()  # freed with all the rest; who writes next learns of it
        except LedgerUnavailable:
            return False
        finally:
            self._holdings.end_look()
        return True

    async def _look(self) -> None:
        node = self._node.id
        sure = self._holdings.begin_look()
        held = await self._held(node)
        if not self._node.is_still(node):
            self._holdings.none_missing()
            return
        lost = self._holdings.lost(held, self.in_memory(), sure=sure)
        for start in range(0, len(lost), FREED_ROWS):
            some = lost[start : start + FREED_ROWS]
            await self._ledger.free(some, node=node, now=self._clock.now())
            self.released += len(some)
            self._unknown_endpoints.look_everywhere()  # of whichever endpoints they are
            self._looks.wake()
            self._peers.work()

    async def _held(self, node: bytes) -> Sequence[bytes]:
        return await self._ledger.held(node, limit=self._settings.memory_deliveries * 2)
