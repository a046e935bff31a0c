"""Operations of a person on one delivery: send it again, or now; cancel it; put a dead letter away with a note.

A replay keeps the event's id and bytes and has its own delivery id, attempt 1 and `replay_of`; it starts its
schedule anew, under the policy of today.
"""

from __future__ import annotations

from surehook.core import ids, lanes
from surehook.core.errors import CommitUnknown, LedgerUnavailable, Problem
from surehook.core.model import Delivery
from surehook.core.policy import Policy, parse_policy
from surehook.core.profiles import PROFILES
from surehook.delivery.managing import Manager
from surehook.ports.reading import DeliveryView

CANCEL_LOOKS = 3  # a delivery that goes on to its next attempt between look and end is looked at again
COMMIT_TRIES = 5  # with the same ids, so a commit whose answer was lost is found and not doubled


async def resend(manager: Manager, delivery: bytes) -> tuple[DeliveryView, bool]:
    """The delivery that will go out, and whether it is a new one.

    Raises Problem `not_found`, `endpoint_gone` or `event_gone` (its bytes are past their retention).
    """
    seen = await find(manager, delivery)
    if seen.finished_at is None:
        return await _hasten(manager, seen)
    replacement = await _replacement(manager, seen)
    made = await _write(manager, [seen.id], [replacement])
    if not made:
        raise _gone("endpoint_gone", "its endpoint was deleted meanwhile")
    manager.probe_now(seen.endpoint)
    manager.wake()
    return await find(manager, replacement.id), True


async def find(manager: Manager, delivery: bytes) -> DeliveryView:
    seen = await manager.ledger.delivery(delivery)
    if seen is None:
        raise Problem("not_found", "there is no delivery with this id", status=404)
    return seen


async def cancel(manager: Manager, delivery: bytes) -> DeliveryView:
    """End it as `cancelled`, reason `request`. Raises Problem `delivery_sending` or `delivery_finished`."""
    for _ in range(CANCEL_LOOKS):
        seen = await find(manager, delivery)
        if seen.finished_at is not None:
            raise Problem("delivery_finished", f"it has ended already: {seen.state}", status=409)
        opened = await manager.ledger.open_delivery(delivery)
        if opened is None or opened[1] is not None:
            continue  # between the looks it ended, or it was taken up
        now = manager.clock.now()
        if await manager.endings.end([opened[0]], state="cancelled", reason="request", now=now):
            return await find(manager, delivery)
    raise Problem(
        "delivery_sending",
        "a process holds it: its request is under way, or it waits for its turn in memory",
        hint="what was sent, its result decides; pause the endpoint, and what waits is parked and can be cancelled",
        status=409,
    )


async def dismiss(manager: Manager, delivery: bytes, *, note: str) -> DeliveryView:
    """Put a dead letter away. Raises Problem `not_a_dead_letter` for one that is none (any more)."""
    seen = await find(manager, delivery)
    if not await manager.ledger.dismiss(delivery, note=note, now=manager.clock.now()):
        detail = f"its state is {seen.state}"
        if seen.state == "dead":
            detail = "it was replayed" if seen.replayed_by is not None else "it was dismissed before"
        raise Problem("not_a_dead_letter", detail, status=409)
    return await find(manager, delivery)


async def _write(manager: Manager, originals: list[bytes], replacements: list[Delivery]) -> list[bytes]:
    """`Reading.resend`, run again with the same ids while the outcome of its commit is unknown."""
    for _ in range(COMMIT_TRIES):
        try:
            return await manager.ledger.resend(originals, replacements, now=manager.clock.now())
        except CommitUnknown:
            continue
    raise LedgerUnavailable("the outcome of a commit stayed unknown")


def replacement(manager: Manager, seen: DeliveryView, policy: Policy, *, body: bytes, now: int) -> Delivery:
    """The new delivery of a finished one: same event, same bytes, its schedule begins now."""
    overdue_at = None if policy.escalate_after is None else now + int(policy.escalate_after * 1000)
    return Delivery(
        id=ids.delivery_id(seen.event, manager.entropy.bits(6)),
        event=seen.event,
        endpoint=seen.endpoint,
        tenant=seen.tenant,
        type=seen.type,
        lane=lanes.first_lane(policy, is_slow=False),
        attempt=1,
        due_at=now,
        born_at=now,
        body=body,
        overdue_at=overdue_at,
        replay_of=seen.id,
    )


async def policy_of(manager: Manager, endpoint: bytes, event_type: str) -> Policy | None:
    """The policy that holds today: the endpoint's, else the event type's, else `standard`. None: no endpoint."""
    found = await manager.ledger.endpoint(endpoint)
    if found is None:
        return None
    if found.policy is not None:
        return parse_policy(found.policy, PROFILES)
    registered = await manager.ledger.event_type(event_type)
    return parse_policy(None if registered is None else registered.policy, PROFILES)


async def _hasten(manager: Manager, seen: DeliveryView) -> tuple[DeliveryView, bool]:
    """Make an open delivery due now. One that is being sent is on its way already."""
    if await manager.ledger.due_now(seen.id, now=manager.clock.now()):
        manager.probe_now(seen.endpoint)
        manager.wake()
    return await find(manager, seen.id), False


async def _replacement(manager: Manager, seen: DeliveryView) -> Delivery:
    policy = await policy_of(manager, seen.endpoint, seen.type)
    if policy is None:
        raise _gone(
            "endpoint_gone", "its endpoint was deleted", hint="POST /v1/events sends to other endpoints"
        )
    event = await manager.ledger.event(seen.event)
    if event is None or not event.body:
        raise _gone("event_gone", "the bytes of its event are past their retention")
    return replacement(manager, seen, policy, body=event.body, now=manager.clock.now())


def _gone(code: str, detail: str, *, hint: str | None = None) -> Problem:
    return Problem(code, detail, hint=hint, status=409)
