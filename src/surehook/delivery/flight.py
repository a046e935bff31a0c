"""One request under way, and what its answer says about the endpoint that was asked."""

from __future__ import annotations

from typing import Protocol

from surehook.core import lanes, outcome
from surehook.core.breaker import Probe
from surehook.core.model import FIRST, Delivery, Lane
from surehook.core.outcome import Outcome
from surehook.delivery.endpoint_state import EndpointState
from surehook.delivery.plans import Plan
from surehook.ports.transport import Answer, Exchange, Request


class Answered(Protocol):
    """Who began the request, and hears its answer."""

    def answered(self, flight: Flight, answer: Answer) -> None: ...


class Flight:
    """One request under way. Called by the transport with its answer, exactly once.

    It carries what it was asked of: the request, the target, the breaker of its URL, the policy it runs under, and `asked`,
    which the route counts up whenever its requests become others. The answer judges these, not what the endpoint is by then.
    """

    __slots__ = (
        "asked", "breaker", "cuts", "deliver", "delivery", "exchange", "lane", "plan", "probe", "request", "route",
        "started_at", "suspect", "target",
    )  # fmt: skip

    def __init__(
        self,
        deliver: Answered,
        route: EndpointState,
        plan: Plan,
        delivery: Delivery,
        lane: Lane,
        request: Request,
        *,
        probe: Probe | None,
        started_at: int,
    ) -> None:
        self.deliver = deliver
        self.route = route
        self.asked = route.asked
        self.target = route.target
        self.breaker = route.breaker
        self.plan = plan
        self.delivery = delivery
        self.lane = lane
        self.request = request
        self.probe = probe
        self.suspect = route.suspect
        self.cuts = route.limits[lane].cuts
        self.started_at = started_at
        self.exchange: Exchange | None = None

    def __call__(self, answer: Answer) -> None:
        self.deliver.answered(self, answer)

    @property
    def is_stale(self) -> bool:
        """Tell whether the endpoint was deleted, or would be asked otherwise by now."""
        return self.asked != self.route.asked or self.route.gone

    def mind_endpoint(self, answer: Answer, result: Outcome) -> None:
        """Note what the answer says about the endpoint: its pace, and how much it may have under way.

        An answer from elsewhere says one thing: a time-out makes a suspect until the new place has answered, so that
        nobody who changes the URL again and again hangs in more than the suspects' part of a lane.
        """
        route, lane = self.route, self.lane
        is_delivered = result is outcome.DELIVERED
        has_hung = not is_delivered and (result.name == "timed_out" or answer.failure == "token_timeout")
        if has_hung:
            route.suspect = True
        if self.target is not route.target or route.gone:
            return
        limit = route.limits[lane]
        if is_delivered:
            if limit.now < limit.ceiling:
                limit.grow(begun=self.cuts)
            route.suspect = route.blocked = False
        elif has_hung and lane == FIRST:
            limit.hang(begun=self.cuts, floor=lanes.TIMEOUT_FLOOR[lane])
        elif has_hung:
            limit.shrink(begun=self.cuts, floor=lanes.TIMEOUT_FLOOR[lane])
        elif result.name == "throttled" or result.breaker == outcome.FAIL:
            limit.refuse(begun=self.cuts)
        if answer.status is not None or result.name == "timed_out":
            over = answer.total_us > self.plan.policy.timeouts.first * 1_000_000
            route.pace.note(over or result.name == "timed_out")
