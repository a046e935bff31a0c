"""One request out, one result in: breaker and status admit, the stored bytes are signed and sent, the answer
is classified, and `core.delivery.decide` says what follows. The ledger is written by `record`.

A `Flight` is one request under way; the transport calls it with the answer. There is no task and no future
per delivery: at thousands a second those would cost as much as everything else in this file.
"""

from __future__ import annotations

from collections.abc import Iterator

from surehook.core import kept, lanes, outcome
from surehook.core.breaker import Probe
from surehook.core.delivery import (
    DELIVERED,
    DeliveryDecision,
    decide,
    exhausted,
    is_called_off,
    is_too_old,
    spared_endpoint,
)
from surehook.core.model import FIRST, RETRY, Attempt, Delivery, Lane, Notice, Settled
from surehook.core.outcome import Outcome
from surehook.core.policy import Policy
from surehook.delivery.breaker_changes import BreakerChanges
from surehook.delivery.delivery_notices import DeliveryNotices
from surehook.delivery.directory import Directory
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.endpoint_state import EndpointState
from surehook.delivery.flight import Flight
from surehook.delivery.loops import Loops
from surehook.delivery.node import Node
from surehook.delivery.parking import Parking
from surehook.delivery.plans import Plan
from surehook.delivery.record import Record
from surehook.delivery.request import header_lines, kept_later, kept_of, signer_at
from surehook.delivery.settings import EngineSettings
from surehook.delivery.tokens import Tokens
from surehook.delivery.watch import DeliveryCounts
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy
from surehook.ports.transport import Answer, Request

UNSAID_MS = 1_000  # from a probe that said nothing to the next


class Deliver:
    """Sends what it is given, and settles what came of it."""

    def __init__(
        self,
        *,
        clock: Clock,
        entropy: Entropy,
        settings: EngineSettings,
        node: Node,
        loops: Loops,
        directory: Directory,
        dispatch: Dispatch,
        tokens: Tokens,
        record: Record,
        watch: DeliveryCounts,
        parking: Parking,
        breakers: BreakerChanges,
    ) -> None:
        self._clock = clock
        self._entropy = entropy
        self._node = node
        self._loops = loops
        self._directory = directory
        self._dispatch = dispatch
        self._tokens = tokens
        self._record = record
        self._watch = watch
        self._parking = parking
        self._breakers = breakers
        self._delivers = frozenset(settings.lanes)
        self._backlog_most = settings.record_backlog
        self.telling = DeliveryNotices(clock=clock, entropy=entropy)
        self.flights: set[Flight] = set()
        self.unsent: list[Delivery] = []  # aborted by our shutdown before a byte was written
        self.unknown: list[Delivery] = []  # … after
        self._is_halted = False
        self._permit = node.permit()

    def forget(self) -> None:
        """This node was evicted: whatever is under way belongs to somebody else now, probes as well."""
        self._permit = self._node.permit()
        for flight in self.flights:
            if flight.probe is not None:
                flight.breaker.drop_probe(flight.probe)
        self.flights.clear()

    def halt(self) -> None:
        """It is over: answers of requests under way are dropped."""
        self._is_halted = True

    def held_ids(self) -> Iterator[bytes]:
        """Deliveries that are being sent."""
        return (flight.delivery.id for flight in self.flights)

    # -- out --------------------------------------------------------------------------------------------

    def start(self, route: EndpointState, delivery: Delivery, lane: Lane) -> bool:
        """Begin the attempt in hand; False where nothing was sent: its endpoint is gone, too many results wait to be recorded,
        or it was parked, ended or moved to the other lane."""
        if route.gone:
            self.end_deleted(route, delivery)
            return False
        if self._record.backlog >= self._backlog_most:
            self._dispatch.pause()
            self._dispatch.push_front(route, delivery)
            return False
        reason = route.block_reason
        if reason is not None:
            self._parking.put(route, delivery, reason)
            return False
        if (
            lane == FIRST
            and route.pace.is_slow
            and self._directory.plan(route, delivery.type).policy.adaptive
        ):
            # Found slow since it was accepted: one patient call instead of two.
            delivery.lane = RETRY
            if RETRY in self._delivers:
                self._dispatch.push(route, delivery)
            else:
                self._record.put_wrong_lane(route, delivery)
            return False
        return self._send(route, delivery, lane, probe=None)

    def probe(self, route: EndpointState, delivery: Delivery, probe: Probe) -> bool:
        """Begin the one attempt that a half-open breaker lets through, in the patient lane."""
        state = self._dispatch.lanes[RETRY]
        state.take_slot(route.endpoint.tenant)
        route.flying[RETRY] += 1
        if route.suspect:
            state.suspects_busy += 1
        if self._send(route, delivery, RETRY, probe=probe):
            return True
        if route.suspect:
            state.suspects_busy -= 1
        state.give_slot(route.endpoint.tenant)
        route.flying[RETRY] -= 1
        return False

    def _send(self, route: EndpointState, delivery: Delivery, lane: Lane, *, probe: Probe | None) -> bool:
        now = self._clock.now()
        plan = self._directory.plan(route, delivery.type)
        policy = plan.policy
        if is_too_old(delivery, policy, at=now):
            self._end(route, delivery, state="dead", notices=(self.telling.of_age(delivery),))
            return False
        if not policy.auto_retry and self._is_called_off(route, delivery, policy, now):
            return False
        signer = route.signer
        if signer is None or now >= route.signer_until:
            signer = signer_at(route, now)
        if lane == FIRST and probe is None:
            timeout_s = policy.timeouts.first
        else:
            place = delivery.attempt - delivery.spared
            timeout_s = lanes.timeout_s(
                policy, lane=lane, place=place, is_slow=route.pace.is_slow, probe=probe is not None
            )
        request = Request(
            target=route.target,
            headers=header_lines(route, plan, signer, delivery, now=now),
            body=delivery.body,
            timeout_s=timeout_s,
            connect_timeout_s=policy.timeouts.connect,
            private=route.private,
            redirects=policy.redirects,
            redirect_style=plan.redirect_style,
            method=route.method,
            permit=self._permit,
        )
        flight = Flight(self, route, plan, delivery, lane, request, probe=probe, started_at=now)
        self.flights.add(flight)
        if route.credential is None:
            flight.exchange = self._tokens.transport.send(request, flight)
        else:
            flight.exchange = self._tokens.send(request, route.credential, flight)
        return True

    def _is_called_off(self, route: EndpointState, delivery: Delivery, policy: Policy, now: int) -> bool:
        """End a retry that was in hand, or on its way out of parking, while the walk over what waits went by."""
        if not is_called_off(delivery, policy):
            return False
        rule = exhausted(delivery, policy, now=now)
        if rule.end is None:
            return False  # enter_failure: its own next failure decides
        self._end(route, delivery, state=rule.end, notices=self.telling.of_calling_off(rule, delivery))
        return True

    # -- in ---------------------------------------------------------------------------------------------

    def answered(self, flight: Flight, answer: Answer) -> None:
        """A request ended, one way or the other."""
        try:
            self._answered(flight, answer)
        except Exception as error:  # the transport would log it, and what it holds stay held
            self._loops.defect("answers", error)

    def _answered(self, flight: Flight, answer: Answer) -> None:
        if self._is_halted:
            return
        try:
            self.flights.remove(flight)
        except KeyError:  # this node was evicted meanwhile: others have it, and its slots are free
            self._dispatch.memory.let_go(flight.route, flight.delivery)
            self._dispatch.finished(flight.route, flight.lane, suspect=flight.suspect)
            return
        route, plan, delivery, lane = flight.route, flight.plan, flight.delivery, flight.lane
        probe = flight.probe
        now = self._clock.now()
        if answer.failure is None and answer.status in plan.success:
            result = outcome.DELIVERED
        elif answer.failure == "aborted" and not answer.redirected:
            # a hop before it has been sent, and history says so
            if probe is not None:
                flight.breaker.drop_probe(probe)
            self._aborted(route, delivery, unknown=answer.unknown)
            self._dispatch.finished(route, lane, suspect=flight.suspect)
            return
        else:
            result = outcome.classify(
                policy=plan.policy, success=plan.success, lane=lane, probe=probe is not None, status=answer.status,
                failure=answer.failure, headers=answer.headers, body=answer.body, now=now,
            )  # fmt: skip
        # The answer was read under the policy it was asked by; what follows from it is for the one that holds now.
        plan = self._directory.plan(route, delivery.type)
        flight.mind_endpoint(answer, result)
        self._mind_breaker(flight, result, plan.policy, now)
        if result is outcome.DELIVERED:
            decision = DELIVERED
        else:
            decision = decide(
                delivery, result, policy=plan.policy, now=now + 1,  # the clock shows whole milliseconds, cut
                jitter=self._entropy.random(),
            )  # fmt: skip
            if flight.is_stale:
                decision = spared_endpoint(decision)
        self._settle(flight, plan, answer, result, decision, now)
        self._dispatch.finished(route, lane, suspect=flight.suspect)

    def _aborted(self, route: EndpointState, delivery: Delivery, *, unknown: bool) -> None:
        """A request ended before its answer, by our own doing: a shutdown, or a lease too short for its first byte."""
        if not self._node.running:
            (self.unknown if unknown else self.unsent).append(delivery)
            self._dispatch.memory.let_go(route, delivery)
            return
        assert not unknown, "only a shutdown aborts what was begun"
        self._dispatch.pause()  # the next beat resumes
        self._dispatch.push(route, delivery)

    def _mind_breaker(self, flight: Flight, result: Outcome, policy: Policy, now: int) -> None:
        """Let the breaker hear what the answer says about the URL it was asked of. Trouble with a request that would
        not be made again says nothing: only a good word about the URL holds then."""
        if result is outcome.DELIVERED and flight.probe is None:  # almost every answer: it turns nothing
            if policy.breaker is not None:
                flight.breaker.after(False, now, probe=None)
            return
        breaker, probe = flight.breaker, flight.probe
        failed = result.key or result.breaker == outcome.FAIL
        change = None
        if result.breaker == outcome.UNCOUNTED or (failed and flight.is_stale):
            if probe is not None:
                breaker.drop_probe(probe, next_at=now + UNSAID_MS)
        elif result.key:
            change = breaker.trip("key", now)
        elif probe is not None or policy.breaker is not None:
            change = breaker.after(failed, now, probe=probe)
        if change is not None:
            if change == "closed":
                for limit in flight.route.limits:
                    limit.ramp()
            self._breakers.by_call(breaker, change, flight.route.endpoint.id)

    def _settle(
        self,
        flight: Flight,
        plan: Plan,
        answer: Answer,
        result: Outcome,
        decision: DeliveryDecision,
        now: int,
    ) -> None:
        route, delivery = flight.route, flight.delivery
        if route.gone and decision.end is None:
            decision = DeliveryDecision(end="cancelled")
        is_last = decision.end is not None
        body = kept.body(answer.body, number=delivery.attempt, is_last=is_last)
        # The first eight go by place: a name counts as two arguments, and beyond thirty a call goes by way of a dictionary, at
        # four times the price.
        entry = Attempt(
            delivery.id,
            delivery.attempt,
            "attempt",
            flight.lane,
            flight.started_at,
            result.name,
            answer.unknown,
            answer.status,
            error=answer.failure,
            address=answer.address,
            dns_us=answer.dns_us,
            connect_us=answer.connect_us,
            tls_us=answer.tls_us,
            first_byte_us=answer.first_byte_us,
            total_us=answer.total_us,
            headers=kept.headers(answer.headers, number=delivery.attempt, is_last=is_last),
            body=body,
            truncated=answer.truncated or len(body) < len(answer.body),
            next_at=None if decision.end is not None or decision.parked is not None else decision.due_at,
        )
        notices: tuple[Notice, ...] = ()
        if decision is not DELIVERED:
            notices = self.telling.of_attempt(flight, answer, result, decision, now)
        finalize_ms = route.finalize_ms
        self._record.put(
            route,
            Settled(
                delivery=delivery,
                entry=entry,
                end=decision.end,
                reason="deleted" if decision.end == "cancelled" else None,
                lane=decision.lane,
                number=decision.number,
                due_at=decision.due_at,
                parked=decision.parked,
                spared=decision.spared,
                notices=notices,
                finalize_by=None if finalize_ms is None or decision.end != "delivered" else now + finalize_ms,
                request_headers=kept_of(flight.request) if decision.end == "dead" else None,
            ),
            None if flight.is_stale else plan,
        )
        if decision.endpoint_status is not None:
            self._record.status_changed(route, decision)
        self._watch.attempted(
            flight.lane, result.name, total_us=answer.total_us,
            late_ms=_late_ms(flight) if delivery.attempt > 1 else 0, number=delivery.attempt,
        )  # fmt: skip

    def end_deleted(self, route: EndpointState, delivery: Delivery) -> None:
        """A held delivery whose endpoint was deleted."""
        self._end(route, delivery, state="cancelled", reason="deleted")

    def _end(
        self,
        route: EndpointState,
        delivery: Delivery,
        *,
        state: str,
        reason: str | None = None,
        notices: tuple[Notice, ...] = (),
    ) -> None:
        """Finish a held delivery without a call: its endpoint is gone, its age has passed, it is not retried any more."""
        now = self._clock.now()
        entry = Attempt(
            delivery=delivery.id, number=delivery.attempt, kind="ended", lane=delivery.lane, started_at=now
        )
        kept_headers = None
        if state == "dead":
            plan = self._directory.plan(route, delivery.type)
            kept_headers = kept_later(route, plan, delivery, now=now)
        ending = Settled(
            delivery=delivery, entry=entry, end=state, reason=reason, notices=notices,
            request_headers=kept_headers,
        )  # fmt: skip
        self._record.put(route, ending)


def _late_ms(flight: Flight) -> int:
    """From when the delivery could first be sent: the time that it was parked is nobody's lateness."""
    free_since = flight.route.free_since
    if free_since is None:
        return 0
    return flight.started_at - max(flight.delivery.due_at, min(free_since, flight.started_at))
