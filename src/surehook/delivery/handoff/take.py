"""Messages of one lane: opened in their order, claimed by id, acknowledged when all of it is in the ledger.

A message is opened when memory has room for what it holds, or for a part of it; until then it lies here
unacknowledged, and `prefetch` bounds how many do, so that a full worker takes nothing from others. What the
claim does not give is held by somebody, parked, finished or not due: it is not ours. When the last row of a
message has left memory (recorded, parked, handed back) the message is acknowledged. Should it not be, because
this process dies, it comes to another worker, which finds its rows held until the eviction and drops it; the
sweeper hands them over after that. What the claim left for want of bytes stays in its message, and is asked for again.

Several small messages share one claim, as requests share a commit.
"""

from __future__ import annotations

import asyncio
from collections import deque

from surehook.core import parcel
from surehook.core.errors import LedgerBroken, LedgerUnavailable, NodeEvicted
from surehook.core.model import Lane
from surehook.core.parcel import Watermark
from surehook.delivery.arrivals import Arrivals
from surehook.delivery.claim_looks import CLAIM_BYTES
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.handoff.opened import Opened, OpenedMessages
from surehook.delivery.holdings import Holdings
from surehook.delivery.node import Node
from surehook.delivery.pump import Pump
from surehook.delivery.settings import EngineSettings
from surehook.ports.clock import Clock
from surehook.ports.handoff import Handing, Parcel
from surehook.ports.ledger import Ledger

LEDGER_AWAY_S = 1.0  # between tries
FULL_S = 0.05  # between looks whether memory has room again


class Take:
    """One lane."""

    def __init__(
        self,
        lane: Lane,
        *,
        ledger: Ledger,
        handing: Handing,
        clock: Clock,
        settings: EngineSettings,
        node: Node,
        dispatch: Dispatch,
        pump: Pump,
        arrivals: Arrivals,
        holdings: Holdings,
        opened: OpenedMessages,
    ) -> None:
        self._lane = lane
        self._ledger = ledger
        self._handing = handing
        self._clock = clock
        self._settings = settings
        self._node = node
        self._dispatch = dispatch
        self._pump = pump
        self._arrivals = arrivals
        self._holdings = holdings
        self._opened = opened
        self._line: deque[Opened | tuple[Parcel, Watermark]] = deque()
        self._more = asyncio.Event()
        self._stopped = False
        self.taken = 0  # rows claimed from messages since the start
        self.foreign = 0  # messages that were not ours to read

    # -- the broker's side ------------------------------------------------------------------------------

    def put(self, message: Parcel) -> None:
        """A message has come."""
        content = parcel.decode(message.body)
        if content is None:
            self.foreign += 1
            message.ack()
        elif isinstance(content, Watermark):
            self._line.append((message, content))
        else:
            self._line.append(Opened(message, content))
        self._more.set()

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing waits to be opened."""
        return not self._line

    def line_lost(self) -> None:
        """The connection is gone: what was not opened comes again, to us or to others."""
        self._line.clear()

    # -- the loop ---------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the loop once the claim in hand is done."""
        self._stopped = True
        self._more.set()

    async def run(self) -> None:
        while not self._stopped:
            if not self._line:
                self._more.clear()
                await self._more.wait()
                continue
            try:
                wait_s = await self._open()
            except (NodeEvicted, LedgerBroken) as error:
                self._node.fail(error)
                wait_s = LEDGER_AWAY_S
            except LedgerUnavailable:
                wait_s = LEDGER_AWAY_S
            if wait_s and not self._stopped:
                await asyncio.sleep(wait_s)

    async def _open(self) -> float:
        """Open what stands first in the line; returns how many seconds to wait before the next."""
        first = self._line[0]
        if not isinstance(first, Opened):
            message, watermark = first
            await self._handing.record_watermark(
                self._lane, watermark.generation, node=self._node.id, now=self._clock.now()
            )
            if self._line and self._line[0] is first:  # the connection may be gone meanwhile
                self._line.popleft()
            message.ack()
            return 0.0
        memory = self._dispatch.memory
        rows, size = memory.room(), memory.room_bytes()
        if self._dispatch.paused or rows <= 0:
            return FULL_S
        with self._holdings.leasing():
            await self._claim(min(rows, self._settings.claim_rows), min(size, CLAIM_BYTES))
        return 0.0

    async def _claim(self, limit: int, size: int) -> None:
        """One claim for the messages at the head of the line: at most `limit` rows, and `size` bytes of bodies."""
        asked: dict[bytes, Opened] = {}
        shares: list[tuple[Opened, int]] = []
        for opened in self._line:
            if not isinstance(opened, Opened) or limit <= 0:
                break
            share = opened.left[:limit]
            if not share:
                continue  # all of its ids stand in a message in front
            limit -= len(share)
            shares.append((opened, len(share)))
            for delivery in share:
                asked.setdefault(delivery, opened)
        ahead = self._clock.now() + int(self._settings.claim_ahead_s * 1000)
        node = self._node.id
        claimed = await self._ledger.claim_ids(list(asked), node=node, now=ahead, size=size)
        rest = frozenset(claimed.rest)
        # Where we were evicted before the answer came, they are free again.
        rows = claimed.rows if self._node.is_still(node) else []
        for row in rows:
            self._opened.put(row.id, asked[row.id])
        self.taken += len(rows)
        for opened, count in shares:
            opened.left[:count] = [delivery for delivery in opened.left[:count] if delivery in rest]
            opened.ack_if_done()
        while self._line and isinstance(self._line[0], Opened) and not self._line[0].left:
            self._line.popleft()
        self._arrivals.take(rows)
        self._pump.pump()
