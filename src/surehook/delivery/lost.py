"""Leases whose answer was lost: held in the book, and known to nobody here. They come back within about a second.

When the connection goes during the commit of a claim, the rows of that claim may be this node's, and it cannot
say which: asked again, a claim leases others. So the book and memory are compared as soon as there is reason to,
and a few times more, since the server may still be at work on what we have given up. What that misses gives the
ten-second look (`rescue`) a reason.

Two looks make sure, and time is no part of it. A row is lost when both saw it held and memory had it at
neither, while every call that was leasing rows at the first had ended before the second, and nothing let the
row go meanwhile. Were it in the hands of such a call, that call would have brought it; were it leased anew,
it was let go before. It is freed as a burial would free it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager

from surehook.core.errors import CommitUnknown, LedgerUnavailable, NodeBuried
from surehook.core.model import Delivery
from surehook.delivery.settings import EngineSettings
from surehook.ports.clock import Clock
from surehook.ports.ledger import Ledger

# Pauses before the looks that follow a loss. What the server still does for a connection that is gone ends within
# its own deadline; almost always that is milliseconds, and beyond these the ten-second look begins them anew.
LOOKS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
FREED_ROWS = 1_000  # in one transaction: each gets a line of its history
AWAY_S = 0.5  # between tries while the ledger does not answer


class Lost:
    """One node's search. `in_memory` answers with the ids of everything it holds; `wake` starts a claim."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: Clock,
        settings: EngineSettings,
        node: Callable[[], bytes],
        in_memory: Callable[[], set[bytes]],
        wake: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._settings = settings
        self._node = node
        self._in_memory = in_memory
        self._wake = wake
        self._suspected = asyncio.Event()
        self._leasing: set[object] = set()  # calls under way
        self._before: set[object] = set()  # … of them, those at the last look
        self._missing: set[bytes] = set()  # rows that the last look found in the book alone
        self._went: set[bytes] | None = None  # rows let go during the look under way
        self.going_back: set[bytes] = set()  # rows on their way back into the book
        self.told: Callable[[list[bytes]], None] = lambda ids: None  # who else keeps count of rows in memory
        self.freed: Callable[[], None] = lambda: None  # rows are in the book again, of whichever endpoints
        self.released = 0

    # -- what those who hold rows tell ------------------------------------------------------------------

    @contextmanager
    def leasing(self) -> Iterator[None]:
        """Around a call that leases rows, until memory has them."""
        call = object()
        self._leasing.add(call)
        try:
            yield
        except CommitUnknown:
            self.suspect()
            raise
        finally:
            self._leasing.discard(call)

    async def give_back(self, deliveries: Collection[Delivery], work: Awaitable[None]) -> None:
        """Do work that hands rows back which memory does not have."""
        ids = [delivery.id for delivery in deliveries]
        self.going_back.update(ids)
        try:
            await work
        except LedgerUnavailable:
            self.suspect()
            raise
        finally:
            self.going_back.difference_update(ids)
            self.let_go(ids)

    def let_go(self, ids: list[bytes]) -> None:
        """These rows have left memory: recorded, parked or handed back."""
        if self._went is not None:
            self._went.update(ids)
        if self._missing:
            self._missing.difference_update(ids)
        self.told(ids)

    def forget(self) -> None:
        """This node was buried: what was missing was freed, and is leased anew without having been let go."""
        self._missing.clear()

    def suspect(self) -> None:
        """Rows may be held that nobody knows of."""
        self._suspected.set()

    # -- the search -------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Look when there is reason to, for ever."""
        while True:
            await self._suspected.wait()
            self._suspected.clear()
            for pause_s in LOOKS_S:
                await self._clock.sleep(pause_s)
                while not await self._answered():
                    await self._clock.sleep(AWAY_S)
                if self._suspected.is_set():
                    break  # another loss: all over again
            self._missing.clear()

    async def _answered(self) -> bool:
        try:
            await self._look()
        except NodeBuried:
            self._missing.clear()  # freed with all the rest; who writes next learns of it
        except LedgerUnavailable:
            return False
        finally:
            self._went = None
        return True

    async def _look(self) -> None:
        node = self._node()
        sure = not (self._before & self._leasing)
        self._went = set()
        held = await self._ledger.held(node, limit=self._settings.memory_deliveries * 2)
        if node != self._node():
            self._missing.clear()
            return
        known = self._in_memory()
        missing = {row for row in held if row not in known and row not in self._went}
        lost = sorted(missing & self._missing) if sure else []
        self._missing = missing.difference(lost)
        self._before = set(self._leasing)
        for start in range(0, len(lost), FREED_ROWS):
            some = lost[start : start + FREED_ROWS]
            await self._ledger.free(some, node=node, now=self._clock.now())
            self.released += len(some)
            self.freed()
            self._wake()
