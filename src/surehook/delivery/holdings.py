"""Record of what those tell who hold rows of the ledger: which calls lease some now, which go back, which have left memory.

Everybody who leases, hands back or lets go of rows is handed this; it knows none of them. `lease_reconciler.py` compares with
it what the ledger says that this node holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

from surehook.core.errors import CommitUnknown, LedgerUnavailable
from surehook.core.model import Delivery
from surehook.delivery.handoff.opened import OpenedMessages
from surehook.delivery.node import Node
from surehook.ports.clock import Clock
from surehook.ports.ledger import Ledger


class Holdings:
    """`opened`: the broker's messages that rows in memory came in, where there is a broker."""

    def __init__(
        self, *, ledger: Ledger, clock: Clock, node: Node, opened: OpenedMessages | None = None
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._node = node
        self._opened = opened
        self.suspected = asyncio.Event()  # rows may be held that nobody knows of
        self._leasing: set[object] = set()  # calls under way
        self._before: set[object] = set()  # … of them, those at the last look
        self._missing: set[bytes] = set()  # rows that the last look found in the ledger alone
        self._went: set[bytes] | None = None  # rows let go during the look under way
        self._going_back: set[bytes] = set()  # rows on their way back into the ledger
        # Endpoints of which rows went on to a time to come, since the last look; as an ordered set.
        self._rescheduled: dict[bytes, None] = {}

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

    def let_go(self, ids: list[bytes]) -> None:
        """These rows have left memory: recorded, parked or handed back."""
        if self._went is not None:
            self._went.update(ids)
        if self._missing:
            self._missing.difference_update(ids)
        if self._opened is not None:
            self._opened.let_go(ids)

    async def give_back(self, deliveries: Collection[Delivery], work: Awaitable[None]) -> None:
        """Do work that hands rows back which memory does not have."""
        ids = [delivery.id for delivery in deliveries]
        self._going_back.update(ids)
        try:
            await work
        except LedgerUnavailable:
            self.suspect()
            raise
        finally:
            self._going_back.difference_update(ids)
            self.let_go(ids)

    async def hand_back(self, deliveries: Sequence[Delivery], *, node: bytes) -> None:
        """Give rows that this node has leased back to the ledger until their time is near."""
        await self.give_back(deliveries, self._release(deliveries, node))

    async def _release(self, deliveries: Sequence[Delivery], node: bytes) -> None:
        await self._ledger.release(deliveries, node=node, now=self._clock.now())
        self.rescheduled(*{delivery.endpoint for delivery in deliveries})

    def rescheduled(self, *endpoints: bytes) -> None:
        """The ledger has rows of these that nobody holds, to be sent later."""
        self._rescheduled.update(dict.fromkeys(endpoints))

    def take_rescheduled(self) -> dict[bytes, None]:
        """Those since the last call."""
        taken, self._rescheduled = self._rescheduled, {}
        return taken

    def put_rescheduled_back(self, taken: dict[bytes, None]) -> None:
        """They could not be looked at: the next look does."""
        self._rescheduled = taken | self._rescheduled

    def suspect(self) -> None:
        """Rows may be held that nobody knows of."""
        self.suspected.set()

    def forget(self) -> None:
        """This node was evicted: what was missing was freed, and is leased anew without having been let go."""
        self._missing.clear()
        if self._opened is not None:
            self._opened.forget()

    # -- what is held, and what is missing -----------------------------------------------------------------

    @property
    def is_giving_back(self) -> bool:
        """Tell whether rows are on their way back at this moment."""
        return bool(self._going_back)

    def held_ids(self) -> Iterable[bytes]:
        """Rows on their way back into the ledger."""
        return self._going_back

    def begin_look(self) -> bool:
        """The ledger is about to be asked; whether every call that was leasing at the last look has ended."""
        self._went = set()
        return not (self._before & self._leasing)

    def lost(self, held: Collection[bytes], known: Collection[bytes], *, sure: bool) -> list[bytes]:
        """Of what the ledger says that this node holds and memory does not know: what two looks running have missed."""
        went = self._went or ()
        missing = {row for row in held if row not in known and row not in went}
        lost = sorted(missing & self._missing) if sure else []
        self._missing = missing.difference(lost)
        self._before = set(self._leasing)
        return lost

    def end_look(self) -> None:
        self._went = None

    def none_missing(self) -> None:
        """The search is over, or what was missed belongs to others now."""
        self._missing.clear()
