"""Switching `auto_retry` off ends what was only waiting to be retried (docs/policies.md).

Walked are the deliveries of an endpoint, or of an event type whose policy changed, that wait for a retry or are parked
before one. Ended are those that nobody holds and that the policy of now would not try again; the one retry that a first
call which timed out is always given stays. What is in flight at that moment is decided by the new policy when its answer
comes. What a process holds and has not sent is ended where it would be sent (delivery/deliver.py), and so is most of what
a crash kept this walk from reaching.
"""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial

from surehook.core.delivery import exhausted, may_retry
from surehook.core.model import Delivery
from surehook.core.outcome import LATE
from surehook.core.policy import Policy
from surehook.delivery.chores import Chores
from surehook.delivery.deliveries import policy_of
from surehook.delivery.delivery_notices import DeliveryNotices
from surehook.delivery.loops import through_outages
from surehook.delivery.managing import Manager
from surehook.ports.reading import DeliveryFilter

NAME = "end pending retries"
PAGE_ROWS = 100
# parked for this, a delivery has no retry to come: its schedule begins anew
BEGINS_ANEW = frozenset({"failure"})


def begin_ending_retries(
    manager: Manager, chores: Chores, *, endpoint: bytes | None = None, event_type: str | None = None
) -> None:
    """Walk beside the call, where a policy of now makes no retries. Where too many walks are in line already, one over everything
    does the work of them all."""
    if not manager.directory.may_call_off(endpoint=endpoint, event_type=event_type):
        return

    def walk() -> Coroutine[object, None, None]:
        return end_pending_retries(manager, endpoint=endpoint, event_type=event_type)

    if not chores.begin(walk, name=NAME, about=endpoint or event_type):
        chores.begin(lambda: end_pending_retries(manager), name=NAME, about=None, beyond=True)


async def end_pending_retries(
    manager: Manager, *, endpoint: bytes | None = None, event_type: str | None = None
) -> None:
    """Walk what waits to be retried, of the endpoint, of the event type, or all of it, once. What is parked comes second: a
    breaker may open meanwhile, and park what waited for its time."""
    for state in ("retrying", "parked"):
        await _walk(manager, DeliveryFilter(endpoint=endpoint, type=event_type, state=state))


async def _walk(manager: Manager, where: DeliveryFilter) -> None:
    after: bytes | None = None
    while True:
        after = await through_outages(manager.clock, partial(_end_page, manager, where, after))
        if after is None:
            return
        await manager.clock.sleep(0)


async def _end_page(manager: Manager, where: DeliveryFilter, after: bytes | None) -> bytes | None:
    """One page of the walk; where the next one begins."""
    page = await manager.ledger.deliveries(where, limit=PAGE_ROWS, after=after)
    policies: dict[tuple[bytes, str], Policy | None] = {}
    for seen in page.data:
        if not seen.attempts or seen.reason in BEGINS_ANEW:
            continue
        key = (seen.endpoint, seen.type)
        if key not in policies:
            policies[key] = await policy_of(manager, *key)
        policy = policies[key]
        if policy is not None and not policy.auto_retry:
            await _end_one(manager, policy, seen.id)
    return page.next


async def _end_one(manager: Manager, policy: Policy, delivery: bytes) -> None:
    found = await manager.ledger.open_delivery(delivery)
    if found is None or found[1] is not None:
        return
    row = found[0]
    place = row.attempt - row.spared  # of the attempt in hand, from 1; it is retry number place - 1
    if place < 2 or may_retry(policy, place - 1, timed_out=place == 2 and await _timed_out(manager, row)):
        return
    if await policy_of(manager, row.endpoint, row.type) != policy:
        return  # it changed while we walked; whoever changed it walks as well
    now = manager.clock.now()
    rule = exhausted(row, policy, now=now)
    if rule.end is None:
        return  # enter_failure: kept, and the endpoint's own next failure decides
    notices = DeliveryNotices(clock=manager.clock, entropy=manager.entropy).of_calling_off(rule, row)
    await manager.endings.end([row], state=rule.end, reason=None, notices=notices, now=now)


async def _timed_out(manager: Manager, row: Delivery) -> bool:
    """Tell whether the first call ran out of time, wherever it stood then. The row says it of the last one alone, which may
    have been trouble of ours that spent no retry."""
    if row.outcome == "timed_out":
        return True
    made = await manager.ledger.attempts(row.id)
    return any(entry.error in LATE for entry in made if entry.started_at >= row.born_at)
