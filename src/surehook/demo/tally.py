"""Accounts for everything accepted: compares the API with what the receivers saw and the application has. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from surehook.core.answers import DeliveryOut
from surehook.demo.kept import WAITING, DatabaseContent
from surehook.demo.memory import ReceiverMemory

OPEN_STATES = ("scheduled", "sending", "retrying", "parked")


class Totals(Struct, frozen=True, kw_only=True):
    """`accepted = delivered + open + dead + lost`, in deliveries; `applied` and `applied_twice` are events.

    duplicated     requests that reached a receiver after it had answered that delivery with 2xx
    applied        accepted events whose effect is in the application's database
    applied_twice  events whose effect is there more than once
    unordered      events whose effect does not follow from the one before it
    stuck          events that wait in the application although nothing is to come
    """

    accepted: int
    delivered: int
    open: int
    dead: int
    lost: int
    duplicated: int
    applied: int
    applied_twice: int
    unordered: int = 0
    stuck: int = 0

    @property
    def is_good(self) -> bool:
        """Nothing was lost, applied twice, applied in a wrong order, or left standing."""
        return self.lost == self.applied_twice == self.unordered == self.stuck == 0

    def line(self, seconds: float) -> str:
        """The last line of the demonstration."""
        return (
            f"demo: accepted={self.accepted} delivered={self.delivered} open={self.open} dead={self.dead}"
            f" lost={self.lost} duplicated={self.duplicated} applied={self.applied}"
            f" applied_twice={self.applied_twice} seconds={seconds:.1f}"
        )


def tally(
    accepted: Mapping[str, int],
    deliveries: Iterable[DeliveryOut],
    memories: Iterable[ReceiverMemory],
    kept: DatabaseContent,
    application: str,
) -> Totals:
    """Add it all up.

    accepted     deliveries the server promised for each event, by event id
    deliveries   the API's deliveries, each at most counted once; those of other events do not count
    memories     what the receivers saw
    kept         what the application's database holds
    application  the endpoint that leads to it
    """
    sights = {delivery: sight for memory in memories for delivery, sight in memory.seen.items()}
    mine = {d.id: d for d in deliveries if d.event in accepted}
    states = {id: d.state for id, d in mine.items()}
    delivered = sum(
        1
        for id, state in states.items()
        if state == "delivered"
        and id in sights
        and (mine[id].endpoint != application or is_safe(mine[id].event, kept))
    )
    still_open = sum(1 for state in states.values() if state in OPEN_STATES)
    dead = sum(1 for state in states.values() if state == "dead")
    promised = sum(accepted.values())
    return Totals(
        accepted=promised,
        delivered=delivered,
        open=still_open,
        dead=dead,
        lost=promised - delivered - still_open - dead,
        duplicated=sum(sight.repeated for sight in sights.values()),
        applied=sum(1 for event in kept.effects if event in accepted),
        applied_twice=sum(1 for times in kept.effects.values() if times > 1),
        unordered=kept.unordered,
        stuck=_stuck(mine.values(), kept, application),
    )


def is_safe(event: str, kept: DatabaseContent) -> bool:
    """True if the application has the event: its effect is there, or it will still be processed.

    Every event of the demonstration is a move of its document. So one that the inbox has finished with, for whatever reason,
    and whose effect is not there, is lost as surely as one that was never stored.
    """
    return event in kept.effects or kept.states.get(event) in WAITING


def waiting(kept: DatabaseContent) -> int:
    """Number of stored events that have not taken effect and still may."""
    return sum(1 for event, state in kept.states.items() if state in WAITING and event not in kept.effects)


def _stuck(deliveries: Iterable[DeliveryOut], kept: DatabaseContent, application: str) -> int:
    """Number of events that wait in the inbox although no predecessor is still to come."""
    coming = any(d.endpoint == application and d.state != "delivered" for d in deliveries)
    return 0 if coming else waiting(kept)


def by_endpoint(names: Mapping[str, str], deliveries: Iterable[DeliveryOut]) -> dict[str, dict[str, int]]:
    """Deliveries by receiver and state; `names` is endpoint id to receiver."""
    counts: dict[str, dict[str, int]] = {name: {} for name in names.values()}
    for delivery in deliveries:
        states = counts[names[delivery.endpoint]]
        states[delivery.state] = states.get(delivery.state, 0) + 1
    return counts
