"""Everything a node holds, wherever among its parts it is."""

from __future__ import annotations

from surehook.delivery.claim import Claim
from surehook.delivery.deliver import Deliver
from surehook.delivery.lost import Lost
from surehook.delivery.memory import Memory
from surehook.delivery.park import Park
from surehook.delivery.record import Record
from surehook.delivery.routes import queued


def in_memory(
    memory: Memory, deliver: Deliver, claim: Claim, record: Record, park: Park, lost: Lost
) -> set[bytes]:
    """The ids of deliveries that are being sent, wait for it, or are on their way into the book."""
    known = {flight.delivery.id for flight in deliver.flights}
    for route in memory.holders:
        known.update(delivery.id for delivery in queued(route))
    known.update(claim.timers.ids(), record.pending_ids(), park.pending_ids(), lost.going_back)
    return known
