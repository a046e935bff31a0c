"""Switching `auto_retry` off ends what was only waiting to be retried (DESIGN section 6).

Only deliveries of the endpoint that have been tried, are held by nobody, and would by the new policy not be
tried again. The one retry that a first call which timed out is always given stays. What is in flight at that
moment is decided by the new policy when its answer comes.
"""

from __future__ import annotations

from surehook.core import ids
from surehook.core.delivery import exhausted, may_retry
from surehook.core.errors import LedgerUnavailable
from surehook.core.model import Delivery, Endpoint, Notice
from surehook.core.policy import Policy, parse_policy
from surehook.core.profiles import PROFILES
from surehook.delivery.managing import Manager, new_id
from surehook.ports.reading import DeliveryFilter

PAGE_ROWS = 100
TRY_AGAIN_S = 1.0


async def end_pending_retries(manager: Manager, endpoint: Endpoint) -> None:
    """Walk the endpoint's retrying deliveries once and end those whose retry is not guaranteed."""
    policy = parse_policy(endpoint.policy, PROFILES)
    where = DeliveryFilter(endpoint=endpoint.id, state="retrying")
    after: bytes | None = None
    while True:
        try:
            page = await manager.ledger.deliveries(where, limit=PAGE_ROWS, after=after)
            for seen in page.data:
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
    place = row.attempt - row.spared  # of the attempt in hand, from 1; the retry before it has place - 1
    if place < 2 or may_retry(policy, place - 1, timed_out=row.outcome == "timed_out"):
        return
    now = manager.clock.now()
    end = exhausted(row, policy, now=now).end
    if end is None:
        return  # enter_failure: kept, and the endpoint's own next failure decides
    notices = [_notice(manager, row, now)] if end == "dead" else []
    await manager.ledger.end([row], state=end, reason=None, notices=notices, now=now)


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
