"""Consequences for deliveries in memory as the configuration changes."""

from __future__ import annotations

from surehook.delivery.breaker_changes import BreakerChanges
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.endpoint_state import EndpointState
from surehook.delivery.parking import Parking
from surehook.delivery.refill import Refill


class ConfigurationConsequences:
    """`loading.Follower` of the engine."""

    def __init__(
        self, *, dispatch: Dispatch, refill: Refill, parking: Parking, breakers: BreakerChanges
    ) -> None:
        self._dispatch = dispatch
        self._refill = refill
        self._parking = parking
        self._breakers = breakers

    def touched(self, route: EndpointState) -> None:
        """Its queue is parked, or it may take back."""
        if route.is_quiet:
            return
        if route.block_reason is not None:
            self._parking.put_queue(route)
        self._refill.wants_work(route)
        self._dispatch.on_token(route)  # it may have waited for a token of credentials that it has no more

    def dropped(self, route: EndpointState) -> None:
        """Let the next pump end everything that waits for it."""
        for delivery in self._dispatch.drain(route):
            self._dispatch.push(route, delivery)

    def settled(self) -> None:
        """Breakers are judged by the endpoints that share them now."""
        self._breakers.settle()
