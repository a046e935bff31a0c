"""All of the hand-over for one node, as the engine sees it: two links, one way out, the lanes that it works."""

from __future__ import annotations

from surehook.core.model import FIRST, LANES, RETRY
from surehook.delivery.arrivals import Arrivals
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.handoff.link import Link
from surehook.delivery.handoff.opened import OpenedMessages
from surehook.delivery.handoff.send import Send
from surehook.delivery.handoff.sweep import Sweep
from surehook.delivery.handoff.take import Take
from surehook.delivery.holdings import Holdings
from surehook.delivery.loops import Run
from surehook.delivery.node import Node
from surehook.delivery.pump import Pump
from surehook.delivery.settings import EngineSettings
from surehook.ports.clock import Clock
from surehook.ports.handoff import Handing, LaneBroker
from surehook.ports.ledger import Ledger
from surehook.ports.telemetry import Telemetry

LEAVE_S = 2.0  # for what waits to be sent at shutdown; the rest is found by watermarks
PREFETCH_PER_SLOT = 2  # unacknowledged messages for each slot of a lane: one row each must still fill it


class Handoff:
    """Takes from the lanes that this node delivers (none: an API node); it sends and sweeps in both."""

    def __init__(
        self,
        *,
        broker: LaneBroker,
        ledger: Ledger,
        handing: Handing,
        clock: Clock,
        settings: EngineSettings,
        telemetry: Telemetry,
        dispatch: Dispatch,
        pump: Pump,
        node: Node,
        arrivals: Arrivals,
        holdings: Holdings,
        opened: OpenedMessages,
    ) -> None:
        self._handing = handing
        self._opened = opened
        self.send = Send(clock)
        self.takes = {
            lane: Take(
                lane, ledger=ledger, handing=handing, clock=clock, settings=settings, node=node, dispatch=dispatch,
                pump=pump, arrivals=arrivals, holdings=holdings, opened=opened,
            )
            for lane in settings.lanes
        }  # fmt: skip
        self.links = [
            Link(
                lane, broker=broker, handing=handing, clock=clock, telemetry=telemetry, send=self.send,
                sweep=Sweep(lane, handing=handing, clock=clock, settings=settings, send=self.send, node=node),
                take=self.takes.get(lane), prefetch=PREFETCH_PER_SLOT * dispatch.lanes[lane].slots, node=node,
            )
            for lane in (FIRST, RETRY)
        ]  # fmt: skip

    async def prepare(self) -> None:
        """Before the loops begin."""
        await self._handing.prepare_handing()

    @property
    def is_connected(self) -> bool:
        return all(link.is_connected for link in self.links)

    def may_claim(self) -> bool:
        """Tell whether this node should claim from the ledger now, because a queue of its lanes brings nothing."""
        return any(link.may_claim() for link in self.links if link.take is not None)

    def compare(self, in_memory: set[bytes]) -> None:
        """The net under what parts tell of rows that have left memory."""
        self._opened.compare(in_memory)

    def leasing(self) -> list[tuple[str, Run]]:
        """The loops that lease rows: they end after `stop`."""
        return [(f"take {LANES[lane]}", take.run) for lane, take in self.takes.items()]

    def keeping(self) -> list[tuple[str, Run]]:
        """The loops that keep the lines: they run until they are cancelled."""
        return [(f"broker {LANES[link.lane]}", link.run) for link in self.links]

    def stop(self) -> None:
        """Open no more messages and sweep no more: this node is about to leave."""
        for link in self.links:
            link.stop()

    async def close(self) -> None:
        """Send what waits, within a moment."""
        if any(link.is_connected for link in self.links):
            await self.send.emptied(within_s=LEAVE_S)
