"""Rows that this node has leased come into memory, whoever leased them: claims, messages of a broker, taking back."""

from __future__ import annotations

from surehook.core.model import Delivery
from surehook.delivery.claim_looks import ClaimLooks
from surehook.delivery.directory import Directory
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.holdings import Holdings
from surehook.delivery.loops import Loops
from surehook.delivery.node import Node
from surehook.delivery.parking import Parking
from surehook.delivery.pump import Pump
from surehook.delivery.record import Record
from surehook.delivery.settings import EngineSettings
from surehook.delivery.timers import Timers
from surehook.delivery.unknown_endpoints import UnknownEndpoints
from surehook.ports.clock import Clock


class Arrivals:
    """Puts each row where it belongs, and keeps the time of those that are not due yet."""

    def __init__(
        self,
        *,
        clock: Clock,
        settings: EngineSettings,
        directory: Directory,
        node: Node,
        loops: Loops,
        dispatch: Dispatch,
        pump: Pump,
        looks: ClaimLooks,
        parking: Parking,
        record: Record,
        unknown_endpoints: UnknownEndpoints,
        holdings: Holdings,
    ) -> None:
        self._clock = clock
        self._directory = directory
        self._node = node
        self._loops = loops
        self._dispatch = dispatch
        self._looks = looks
        self._parking = parking
        self._record = record
        self._unknown_endpoints = unknown_endpoints
        self._holdings = holdings
        self._ahead_ms = int(settings.claim_ahead_s * 1000)
        self.timers = Timers(
            clock=clock, loops=loops, dispatch=dispatch, pump=pump, record=record, ahead_ms=self._ahead_ms
        )

    def take(self, rows: list[Delivery], *, out_of_parking: bool = False) -> int:
        """Take leased rows in. Returns how many of them went back to the ledger, because another node delivers their lane.

        1. An orphan, whose endpoint memory does not know, goes back, and the ledger is asked about its endpoint.
        2. A row of a lane that another node delivers goes back with the next results.
        3. One that was parked and whose time is far goes back until it is near.
        4. One that its endpoint cannot take now, or that is beyond its share of memory, is parked.
        5. One that was claimed ahead is timed.
        6. What is due is queued.

        What came out of parking was asked for while it had a share, and is kept although a claim under way took that
        first: of two that count on the same room, one would be parked and taken back for ever."""
        unknown: list[Delivery] = []
        later: list[Delivery] = []
        wrong_lane = 0
        now = self._clock.now()
        soon = now + 2 * self._ahead_ms
        memory, looks = self._dispatch.memory, self._looks.of_lane
        for delivery in rows:
            route = self._directory.routes.get(delivery.endpoint)
            if route is None:
                unknown.append(delivery)
                continue
            if delivery.lane not in looks:
                wrong_lane += 1
                memory.hold(route, delivery)
                self._record.put_wrong_lane(route, delivery)
                continue
            if delivery.due_at > soon:
                later.append(delivery)
                continue
            has_share = out_of_parking or memory.has_share(route)
            memory.hold(route, delivery)
            reason = route.block_reason or (None if has_share else "share")
            if reason is not None:
                self._parking.put(route, delivery, reason)
                if reason == "share":
                    looks[delivery.lane].full[route] = None
            elif delivery.due_at > now:
                self.timers.add(route, delivery)
            else:
                self._dispatch.push(route, delivery)
                if len(route.queues[delivery.lane]) >= route.pull:
                    looks[delivery.lane].full[route] = None
        if unknown:
            self._looks.are_unknown(unknown)
            self._unknown_endpoints.claimed(unknown)
        if later:
            self._hand_back(later)
        return wrong_lane

    def _hand_back(self, rows: list[Delivery]) -> None:
        node = self._node.id
        self._loops.do("hand back", lambda: self._holdings.hand_back(rows, node=node))
