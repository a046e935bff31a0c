"""Notices of deliveries that did not arrive, in words for people."""

from __future__ import annotations

from surehook.core import ids
from surehook.core.delivery import DeliveryDecision, called_off
from surehook.core.model import Delivery, Notice
from surehook.core.outcome import Outcome
from surehook.delivery.flight import Flight
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy
from surehook.ports.transport import Answer


class DeliveryNotices:
    """Makes notices; whoever records what they are about records them with it."""

    def __init__(self, *, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._entropy = entropy

    def of_attempt(
        self, flight: Flight, answer: Answer, result: Outcome, decision: DeliveryDecision, now: int
    ) -> tuple[Notice, ...]:
        """Of an attempt that did not deliver."""
        route, delivery = flight.route, flight.delivery
        notices: tuple[Notice, ...] = ()
        entered = decision.endpoint_status == "failure" and route.status == "failure"  # told already
        if decision.notice is not None and not entered:
            notices = (self._notice(decision.notice, delivery, now, describe(result, answer)),)
        if result.name == "blocked" and not route.blocked and not flight.is_stale:
            route.blocked = True
            notices += (self._notice("endpoint.blocked", delivery, now, answer.failure or "blocked"),)
        if decision.endpoint_status == "inactive" and route.status != "inactive":
            # told once, not per call under way
            notices += (self._notice("endpoint.disabled", delivery, now, describe(result, answer)),)
        return notices

    def of_age(self, delivery: Delivery) -> Notice:
        """Of a delivery that its age ended without a call in hand."""
        return self._notice("delivery.dead", delivery, self._clock.now(), "older than the policy's max_age")

    def of_calling_off(self, decision: DeliveryDecision, delivery: Delivery) -> tuple[Notice, ...]:
        """Of a retry that is not made, since `auto_retry` was switched off."""
        if decision.notice is None:
            return ()
        return (self._notice(decision.notice, delivery, self._clock.now(), called_off(delivery)),)

    def _notice(self, kind: str, delivery: Delivery, now: int, detail: str) -> Notice:
        return Notice(
            id=ids.uuid7(now, self._entropy.bits(10)),
            at=now,
            kind=kind,
            tenant=delivery.tenant,
            endpoint=delivery.endpoint,
            delivery=delivery.id,
            detail=detail,
        )


def describe(result: Outcome, answer: Answer) -> str:
    """A notice's one sentence about the last attempt."""
    if answer.status is not None:
        return f"{result.name}: the receiver answered {answer.status}"
    return f"{result.name}: {answer.failure}"
