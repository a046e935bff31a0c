"""Switching `auto_retry` off ends what was only waiting to be retried (DESIGN section 6).

Walked are the retrying deliveries of an endpoint, or of an event type whose policy changed. Ended are those that
nobody holds and that the policy of now would not try again; the one retry that a first call which timed out is
always given stays. What is in flight at that moment is decided by the new policy when its answer comes, and so
is what a crash kept this walk from reaching.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from surehook.core import ids
from surehook.core.delivery import exhausted, may_retry
from surehook.core.errors import LedgerUnavailable
from surehook.core.model import Delivery, Notice
from surehook.core.policy import Policy
from surehook.delivery.chores import Chores
from surehook.delivery.managing import Manager, new_id
from surehook.delivery.resend import policy_of
from surehook.ports.reading import DeliveryFilter

NAME = "end pending retries"
PAGE_ROWS = 100
TRY_AGAIN_S = 1.0  # while the ledger is away


def begin_ending_retries(
    manager: Manager, chores: Chores, *, endpoint: bytes | None = None, event_type: str | None = None
) -> None:
    """Walk beside the call. Where too many walks are in line already, one over everything does the work of them all."""

    def walk() -> Coroutine[Any, Any, None]:
        return end_pending_retries(manager, endpoint=endpoint, event_type=event_type)

    if not chores.begin(walk, name=NAME, about=endpoint or event_type):
        chores.begin(lambda: end_pending_retries(manager), name=NAME, about=None, beyond=True)


async def end_pending_retries(
    manager: Manager, *, endpoint: bytes | None = None, event_type: str | None = None
) -> None:
    """Walk the retrying deliveries of the endpoint, of the event type, or all of them, once."""
    where = DeliveryFilter(endpoint=endpoint, type=event_type, state="retrying")
    after: bytes | None = None
    while True:
        try:
            page = await manager.ledger.deliveries(where, limit=PAGE_ROWS, after=after)
            policies: dict[tuple[bytes, str], Policy | None] = {}
            for seen in page.data:
                key = (seen.endpoint, seen.type)
                if key not in policies:
                    policies[key] = await policy_of(manager, *key)
                policy = policies[key]
                if policy is not None and not policy.auto_retry:
                    await _end_one(manager, policy, seen.id)
        except LedgerUnavailable:
            await manager.clock.sleep(TRY_AGAIN_S)
            continue
        after = page.next
        if after is None:
            return
        await manager.clock.sleep(0)


async def _end_one(manager: Manager, policy: Policy, delivery: bytes) -> None:
    found = await manager.ledger.open_delivery(delivery)
    if found is None or found[1] is not None:
        return
    row = found[0]
    place = row.attempt - row.spared  # of the attempt in hand, from 1; it is retry number place - 1
    if place < 2 or may_retry(policy, place - 1, timed_out=row.outcome == "timed_out"):
        return
    if await policy_of(manager, row.endpoint, row.type) != policy:
        return  # it changed while we walked; whoever changed it walks as well
    now = manager.clock.now()
    end = exhausted(row, policy, now=now).end
    if end is None:
        return  # enter_failure: kept, and the endpoint's own next failure decides
    notices = [_notice(manager, row, now)] if end == "dead" else []
    await manager.endings.end([row], state=end, reason=None, notices=notices, now=now)


def _notice(manager: Manager, row: Delivery, now: int) -> Notice:
    return Notice(
        id=new_id(manager, now),
        at=now,
        kind="delivery.dead",
        tenant=row.tenant,
        endpoint=row.endpoint,
        delivery=row.id,
        detail=f"auto_retry was switched off; the last outcome of {ids.text(ids.DELIVERY, row.id)} was {row.outcome}",
    )
