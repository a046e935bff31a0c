"""The life of a delivery: a table, then `decide`, which gives the next step after one attempt's outcome.

Four open states and four end states. A delivery that is `sending` is held by a node; what happens to it
next is decided here and only here. Everything else that moves a delivery is an order (cancel, pause, a
node's death) and stands in the same table.
"""

from __future__ import annotations

from msgspec import Struct, structs

from surehook.core import ids, schedule
from surehook.core.model import RETRY, Delivery, EndpointStatus, Lane
from surehook.core.outcome import Outcome
from surehook.core.policy import Policy, WaitFactor

# state → {what happens: next state}
TRANSITIONS: dict[str, dict[str, str]] = {
    "scheduled": {"start": "sending", "park": "parked", "cancel": "cancelled", "age": "dead"},
    "retrying": {"start": "sending", "park": "parked", "cancel": "cancelled", "age": "dead"},
    "parked": {"wake": "retrying", "wake_untried": "scheduled", "start": "sending", "cancel": "cancelled", "age": "dead"},
    "sending": {
        "success": "delivered",
        "fail": "retrying",
        "exhaust_dead": "dead",
        "exhaust_drop": "dropped",
        "exhaust_failure": "parked",
        "reject": "dead",
        "key_trouble": "parked",
        "park": "parked",
        "hand_back": "retrying",
        "hand_back_untried": "scheduled",
        "interrupt": "retrying",
        "interrupt_untried": "scheduled",
        "endpoint_deleted": "cancelled",
        "age": "dead",
    },
    "delivered": {},
    "dead": {},
    "dropped": {},
    "cancelled": {},
}  # fmt: skip


# Outcomes of calls that may have timed out; only the history knows at which step. None: not known here.
MAY_BE_LATE = frozenset({"timed_out", "unreachable", None})
# After trouble of our own: at first, and at most. Each try is a row of the history, of every delivery that is open.
OUR_WAIT_MS, OUR_WAIT_MOST_MS = 5_000, 60_000


class DeliveryDecision(Struct, frozen=True, gc=False):
    """The next step of a delivery after an attempt.

    `end` set: finished in that state. Else the delivery goes on as attempt `number` in `lane` at `due_at`,
    parked where `parked` is set. `endpoint_status` and `notice` are side effects for the same transaction.
    """

    end: str | None = None
    lane: Lane = RETRY
    number: int = 0
    due_at: int = 0
    parked: str | None = None
    spared: int = 0
    endpoint_status: EndpointStatus | None = None
    endpoint_reason: str | None = None
    notice: str | None = None


DELIVERED = DeliveryDecision(end="delivered")


def decide(
    delivery: Delivery, outcome: Outcome, *, policy: Policy, now: int, jitter: float
) -> DeliveryDecision:
    """Decide what follows from the attempt in hand. `now` is when its result was seen, `jitter` a random number in [0, 1)."""
    if outcome.name == "delivered":
        return DELIVERED
    if outcome.key:
        # The event is innocent: the receiver's key is wrong. Parked, and no retry is spent.
        return DeliveryDecision(
            number=delivery.attempt + 1, due_at=now, parked="key", spared=delivery.spared + 1, lane=RETRY
        )
    if outcome.terminal:
        gone = outcome.name == "gone"
        return DeliveryDecision(
            end="dead",
            endpoint_status="inactive" if gone else None,
            endpoint_reason="gone" if gone else None,
            notice="delivery.dead",
        )
    if outcome.ours:
        # No file descriptor, no egress proxy: the event and its endpoint are innocent, and no retry is spent.
        due_at = now + min(OUR_WAIT_MS << min(delivery.spared, 8), OUR_WAIT_MOST_MS)
        if is_too_old(delivery, policy, at=due_at):
            due_at = now + OUR_WAIT_MS
        if is_too_old(delivery, policy, at=due_at):
            return exhausted(delivery, policy, now=now)
        return DeliveryDecision(
            number=delivery.attempt + 1, due_at=due_at, spared=delivery.spared + 1, lane=RETRY
        )
    retry = delivery.attempt - delivery.spared
    if not may_retry(policy, retry, timed_out=outcome.late):
        return exhausted(delivery, policy, now=now)
    wait_ms = schedule.wait(policy, retry, jitter) * 1000
    if outcome.retry_after_s is not None and policy.honour_retry_after:
        wait_ms = max(wait_ms, min(outcome.retry_after_s, policy.honour_retry_after) * 1000)
    due_at = now + -int(-wait_ms // 1)  # rounded up: never early
    if is_too_old(delivery, policy, at=due_at):
        return exhausted(delivery, policy, now=now)
    return DeliveryDecision(number=delivery.attempt + 1, due_at=due_at, spared=delivery.spared, lane=RETRY)


def spared_endpoint(decision: DeliveryDecision) -> DeliveryDecision:
    """The same decision without its consequences for the endpoint, which has changed since the request was sent.

    A delivery that would have been parked for a wrong key goes on as a spared retry. One that used up its retries stays
    parked as `failure`: an active endpoint's deliveries begin their schedule anew from there."""
    return structs.replace(
        decision,
        parked=None if decision.parked == "key" else decision.parked,
        endpoint_status=None,
        endpoint_reason=None,
        notice=None if decision.notice == "endpoint.failure" else decision.notice,
    )


def may_retry(policy: Policy, retry: int, *, timed_out: bool) -> bool:
    """True if the policy has a retry number `retry` (from 1).

    With `auto_retry` off there is one exception: a first call that timed out, wherever it stood then, is retried once,
    with the long timeout.
    """
    if drops_at_once(policy):
        return False
    if not policy.auto_retry:
        return retry == 1 and timed_out
    if retry > schedule.retries(policy):
        return False
    waited = sum(schedule.base_wait(policy, earlier) for earlier in range(1, retry))
    return schedule.begins(policy, retry, waited)


def is_called_off(delivery: Delivery, policy: Policy) -> bool:
    """True if the attempt in hand is a retry that the policy no longer makes, as far as can be told without its history:
    the second call stays where the first one may have timed out."""
    place = delivery.attempt - delivery.spared
    if policy.auto_retry or place < 2:
        return False
    return place > 2 or (delivery.spared == 0 and delivery.outcome not in MAY_BE_LATE)


def called_off(delivery: Delivery) -> str:
    """The sentence for the notice of a retry that was called off."""
    return f"auto_retry was switched off; the last outcome of {ids.text(ids.DELIVERY, delivery.id)} was {delivery.outcome}"


def exhausted(delivery: Delivery, policy: Policy, *, now: int) -> DeliveryDecision:
    """The policy's decision for a delivery that may not be tried again."""
    if policy.on_exhausted == "drop" or drops_at_once(policy):
        return DeliveryDecision(end="dropped", notice="delivery.dropped")
    if policy.on_exhausted == "enter_failure":
        return DeliveryDecision(
            number=delivery.attempt + 1,
            due_at=now,
            parked="failure",
            spared=delivery.spared,
            endpoint_status="failure",
            endpoint_reason="exhausted",
            notice="endpoint.failure",
        )
    return DeliveryDecision(end="dead", notice="delivery.dead")


def drops_at_once(policy: Policy) -> bool:
    """webhooks.uno: `max_retries` 0 drops a failed delivery at once, whatever else the policy says."""
    return isinstance(policy.schedule, WaitFactor) and policy.schedule.retries == 0


def is_too_old(delivery: Delivery, policy: Policy, *, at: int) -> bool:
    """True if an attempt at the instant `at` would lie past `max_age`, leaving out time that is no age."""
    return policy.max_age is not None and at > delivery.born_at + delivery.stood_ms + policy.max_age * 1000
