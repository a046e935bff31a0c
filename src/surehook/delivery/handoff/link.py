"""The connection to the broker, and what happens while there is none.

A line is made, both lanes are sent to, the lanes of this node are taken from; when it is lost, it is made anew
after a pause that doubles. Until then accept marks nothing, the sweeper rests, and after a short while this
node's claims go to the ledger directly (`may_claim`), which is always allowed: a row is leased once, whoever
asks. The same holds where a line stands but its queue does not flow: no tide has come for long, and this
worker has nothing to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from surehook.core.errors import LedgerBroken, LedgerUnavailable, NodeBuried
from surehook.core.model import LANES, Delivery, Lane
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.handoff.send import Send
from surehook.delivery.handoff.sweep import Sweep
from surehook.delivery.handoff.take import Take
from surehook.delivery.settings import EngineSettings
from surehook.ports.clock import Clock
from surehook.ports.handoff import Broker, BrokerAway, Handing, LaneMarks, Line
from surehook.ports.ledger import Ledger
from surehook.ports.telemetry import Telemetry

RECONNECT_FIRST_S, RECONNECT_MOST_S = 0.1, 5.0
FALLBACK_S = 3.0  # without a line for so long, work is claimed from the ledger
STALL_S = 30.0  # an idle worker whose lane saw no tide for so long believes that its queue does not flow
MARKS_S = 1.0  # how old the generation may be that accept marks with
LEAVE_S = 2.0  # for what waits to be sent at shutdown; the rest is found by tides
PREFETCH_PER_SLOT = 2  # unacknowledged messages for each slot of a lane: one row each must still fill it


class Handoff:
    """All of it for one node. `lanes` are those it takes from (none: an API node)."""

    def __init__(
        self,
        *,
        broker: Broker,
        ledger: Ledger,
        handing: Handing,
        clock: Clock,
        settings: EngineSettings,
        telemetry: Telemetry,
        dispatch: Dispatch,
        lanes: Sequence[Lane],
        node: Callable[[], bytes],
        claimed: Callable[[list[Delivery]], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._broker = broker
        self._handing = handing
        self._clock = clock
        self._settings = settings
        self._telemetry = telemetry
        self._dispatch = dispatch
        self._node = node
        self._fail = fail
        self.send = Send()
        self.sweep = Sweep(handing=handing, clock=clock, settings=settings, send=self.send, node=node)
        self.takes = {
            lane: Take(
                lane, ledger=ledger, handing=handing, clock=clock, settings=settings, node=node, room=self._room,
                claimed=claimed, fail=fail,
            )
            for lane in lanes
        }  # fmt: skip
        self._line: Line | None = None
        self._lost_at = clock.boot()  # since when there is no line
        self._flowed_at = [clock.boot() for _ in LANES]  # when the lane's last tide came, as far as we know
        self._marks: list[LaneMarks] = []
        self._stopping = False
        self._closed = False
        self._to_resign = False  # we may be the sweeper and have no line
        self.losses = 0

    # -- what others ask --------------------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        return self._line is not None

    def may_claim(self) -> bool:
        """Whether this node should claim from the ledger now, because its queues bring nothing."""
        if self._line is None:
            return self._clock.boot() - self._lost_at >= FALLBACK_S
        now = self._clock.boot()
        return any(
            take.is_idle and now - self._flowed_at[lane] >= STALL_S for lane, take in self.takes.items()
        )

    def let_go(self, ids: Iterable[bytes]) -> None:
        """These rows have left memory."""
        ids = list(ids)
        for take in self.takes.values():
            take.let_go(ids)

    def compare(self, in_memory: set[bytes]) -> None:
        for take in self.takes.values():
            take.compare(in_memory)

    def forget(self) -> None:
        """This node was buried."""
        for take in self.takes.values():
            take.forget()

    def stop(self) -> None:
        """Open no more messages and sweep no more: this node is about to leave."""
        self._stopping = True
        for take in self.takes.values():
            take.stop()

    def loops(self) -> list[tuple[str, Coroutine[Any, Any, None]]]:
        """What has to run: the loops that lease rows come first and end after `stop`."""
        return [(f"take {LANES[lane]}", take.run()) for lane, take in self.takes.items()]

    # -- the line ---------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep a line for ever."""
        wait_s = RECONNECT_FIRST_S
        while not self._closed:
            try:
                line = await self._broker.connect()
            except BrokerAway as error:
                if wait_s == RECONNECT_FIRST_S:
                    self._telemetry.fact("broker.away", error=str(error))
                await self._resign()
                await self._clock.sleep(wait_s)
                wait_s = min(wait_s * 2, RECONNECT_MOST_S)
                continue
            try:
                reason = await self._serve(line)
            finally:
                self._line = None
                self.send.marks = [0 for _ in LANES]
                self._lost_at = self._clock.boot()
                for take in self.takes.values():
                    take.line_lost()
                await line.close()
            if not self._closed:
                self.losses += 1
                self._telemetry.fact("broker.lost", error=reason)
                self._to_resign = True
                await self._resign()
                await self._clock.sleep(RECONNECT_FIRST_S)
            wait_s = RECONNECT_FIRST_S

    async def close(self) -> None:
        """Send what waits, within a moment, and let the line go. Called last, with `run` still running."""
        if self._line is not None:
            await self.send.emptied(within_s=LEAVE_S)
        self._closed = True

    async def _serve(self, line: Line) -> str:
        """Everything that needs a line, until it is lost; returns the reason."""
        for lane, take in self.takes.items():
            slots = self._dispatch.lanes[lane].slots
            try:
                await line.consume(lane, take.put, prefetch=PREFETCH_PER_SLOT * slots)
            except BrokerAway as error:
                return str(error)
        self._line = line
        self._flowed_at = [self._clock.boot() for _ in LANES]
        self._telemetry.fact("broker.connected", lanes=",".join(LANES[lane] for lane in self.takes) or None)
        work = [
            asyncio.ensure_future(self._sending(line, 0)),
            asyncio.ensure_future(self._sending(line, 1)),
            asyncio.ensure_future(self._sweeping()),
            asyncio.ensure_future(line.lost()),
        ]
        try:
            done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
            return next(str(task.result()) for task in work if task in done)
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)

    async def _sending(self, line: Line, lane: Lane) -> str:
        try:
            await self.send.run(line, lane)
        except BrokerAway as error:
            return str(error)
        raise AssertionError("sending ends with the line")

    async def _sweeping(self) -> str:
        """Know the marks, and sweep where it is our turn. Ledger trouble is waited out."""
        known_at = self._clock.boot() - MARKS_S
        while True:
            wait_s = MARKS_S
            try:
                if self._clock.boot() - known_at >= MARKS_S:
                    self._learn(await self._handing.lane_marks())
                    known_at = self._clock.boot()
                if not self._stopping:
                    wait_s = min(MARKS_S, await self.sweep.round(self._marks))
            except (NodeBuried, LedgerBroken) as error:
                if not self._stopping:
                    self._fail(error)
            except LedgerUnavailable:
                pass
            await self._clock.sleep(wait_s)

    def _learn(self, marks: list[LaneMarks]) -> None:
        for lane, each in enumerate(marks):
            if not self._marks or each.passed != self._marks[lane].passed:
                self._flowed_at[lane] = self._clock.boot()
        self._marks = marks
        if self._line is not None:
            self.send.marks = [each.generation for each in marks]

    async def _resign(self) -> None:
        """Another node may still have a line: let it sweep. Tried again before each try to connect."""
        if not self._to_resign or self._stopping:
            return
        try:
            await self._handing.resign(node=self._node(), now=self._clock.now())
            self._to_resign = False
        except NodeBuried as error:
            self._fail(error)
        except LedgerUnavailable:
            return

    def _room(self) -> int:
        return 0 if self._dispatch.paused else self._dispatch.room()
