"""A lane's connection to the broker, and what happens while there is none.

A line is made, its lane is sent to and swept, and taken from where this node works the lane; when it is lost, it
is made anew after a pause that doubles. Until then accept marks nothing, the sweeper rests, and after a short
while this node's claims go to the ledger directly (`may_claim`), which is always allowed: a row is leased once,
whoever asks. The same holds where a line stands but nothing moves on it (a broker that is frozen, or takes nothing in
its memory alarm): what we send is not confirmed, or this worker has nothing to do while a watermark does not come out of the
queue it was sent through, or while none comes at all.
A new line proves nothing: only a confirm, or a watermark, says that things move again.

Lanes have a link each and share nothing but the ledger: a queue that has lost its leader (a quorum that is not
there, a node that came back wrong) makes its own lane go by the ledger, and the other lane does not notice.
"""

from __future__ import annotations

import asyncio

from surehook.core.errors import LedgerBroken, LedgerUnavailable, NodeEvicted
from surehook.core.model import LANES, Lane
from surehook.delivery.handoff.send import Send
from surehook.delivery.handoff.sweep import Sweep
from surehook.delivery.handoff.take import Take
from surehook.delivery.loops import RetryPause
from surehook.delivery.node import Node
from surehook.ports.clock import Clock
from surehook.ports.handoff import BrokerAway, Handing, LaneBroker, LaneConnection, LaneMarks
from surehook.ports.telemetry import Telemetry

RECONNECT_FIRST_S, RECONNECT_MOST_S = 0.1, 5.0
FALLBACK_S = 3.0  # without a line for so long, work is claimed from the ledger
UNCONFIRMED_S = 3.0  # nothing that was sent is confirmed for so long: the same
# A watermark is under way for so long while nothing waits at an idle worker: its queue stands still.
UNDER_WAY_S = 3.0
STALL_S = 12.0  # two watermarks and a little: where none was even sent, a lane that saw none is not swept or does not flow
MARKS_S = 1.0  # how old the generation may be that accept marks with


class Link:
    """One lane. `take` is None on a node that does not work it."""

    def __init__(
        self,
        lane: Lane,
        *,
        broker: LaneBroker,
        handing: Handing,
        clock: Clock,
        telemetry: Telemetry,
        send: Send,
        sweep: Sweep,
        take: Take | None,
        prefetch: int,
        node: Node,
    ) -> None:
        self.lane = lane
        self.take = take
        self.sweep = sweep
        self._broker = broker
        self._handing = handing
        self._clock = clock
        self._telemetry = telemetry
        self._send = send
        self._prefetch = prefetch
        self._node = node
        self._line: LaneConnection | None = None
        self._lost_at = clock.boot()  # since when there is no line
        self._flowed_at = clock.boot()  # when the lane's last watermark came, as far as we know
        # since when a watermark that was sent has not come, and none before it
        self._under_way_at: float | None = None
        self._marks: LaneMarks | None = None
        self._stopping = False
        self._to_resign = False  # we may be the sweeper and have no line
        self.losses = 0

    @property
    def is_connected(self) -> bool:
        return self._line is not None

    def may_claim(self) -> bool:
        """Tell whether this node should claim the lane's work from the ledger now, because its queue brings nothing."""
        if self._line is None:
            return self._clock.boot() - self._lost_at >= FALLBACK_S
        if self._send.unconfirmed_s(self.lane) >= UNCONFIRMED_S:
            return True
        return self.take is not None and self.take.is_idle and self._is_still()

    def _is_still(self) -> bool:
        now = self._clock.boot()
        if self._under_way_at is not None and now - self._under_way_at >= UNDER_WAY_S:
            return True
        return now - self._flowed_at >= STALL_S

    def stop(self) -> None:
        """Open no more messages and sweep no more: this node is about to leave."""
        self._stopping = True
        if self.take is not None:
            self.take.stop()

    # -- the line ---------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep a line for ever."""
        backoff = RetryPause(self._clock, RECONNECT_FIRST_S, RECONNECT_MOST_S)
        while True:
            await self._resign()
            try:
                reason = await self._with_line()
            except BrokerAway as error:
                if backoff.is_fresh:
                    self._telemetry.fact("broker.away", lane=LANES[self.lane], error=str(error))
                await backoff.rest()
                continue
            self.losses += 1
            self._to_resign = True
            if not self._stopping:
                self._telemetry.fact("broker.lost", lane=LANES[self.lane], error=reason)
            backoff.reset()
            await self._clock.sleep(RECONNECT_FIRST_S)

    async def _with_line(self) -> str:
        """Make a line and use it until it is lost; returns the reason. Raises BrokerAway where none could be made."""
        line = await self._broker.connect(self.lane)
        try:
            if self.take is not None:
                await line.consume(self.take.put, prefetch=self._prefetch)
            self._line = line
            self._telemetry.fact("broker.connected", lane=LANES[self.lane])
            return await self._serve(line)
        finally:
            if self._line is not None:
                self._line = None
                self._lost_at = self._clock.boot()
            self._send.marks[self.lane] = 0
            if self.take is not None:
                self.take.line_lost()
            await line.close()

    async def _serve(self, line: LaneConnection) -> str:
        work = [
            asyncio.ensure_future(line.lost()),
            asyncio.ensure_future(self._sending(line)),
            asyncio.ensure_future(self._sweeping()),
        ]
        try:
            done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
            return next(task.result() for task in work if task in done)
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)

    async def _sending(self, line: LaneConnection) -> str:
        try:
            await self._send.run(line, self.lane)
        except BrokerAway as error:
            return str(error)
        raise AssertionError("sending ends with the line")

    async def _sweeping(self) -> str:
        """Know the marks, and sweep where it is our turn. Ledger trouble is waited out."""
        known_at = self._clock.boot() - MARKS_S
        while True:
            wait_s = MARKS_S
            try:
                if self._marks is None or self._clock.boot() - known_at >= MARKS_S:
                    self._learn(await self._handing.lane_marks(self.lane))
                    known_at = self._clock.boot()
                if not self._stopping and self._marks is not None:
                    wait_s = min(MARKS_S, await self.sweep.round(self._marks))
            except (NodeEvicted, LedgerBroken) as error:
                if not self._stopping:
                    self._node.fail(error)
            except LedgerUnavailable:
                pass
            await self._clock.sleep(wait_s)

    def _learn(self, marks: LaneMarks) -> None:
        came = self._marks is None or marks.passed != self._marks.passed
        if came:
            self._flowed_at = self._clock.boot()
        if not marks.under_way:
            self._under_way_at = None
        elif came or self._under_way_at is None:
            self._under_way_at = self._clock.boot()
        self._marks = marks
        if self._line is not None:
            self._send.marks[self.lane] = marks.epoch

    async def _resign(self) -> None:
        """Another node may still have a line: let it sweep. Tried again before each try to connect."""
        if not self._to_resign or self._stopping:
            return
        try:
            await self._handing.resign(self.lane, node=self._node.id, now=self._clock.now())
            self._to_resign = False
        except NodeEvicted as error:
            self._node.fail(error)
        except LedgerUnavailable:
            return
