"""What became of everything accepted: the API's word, held against what the receivers saw. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from surehook.demo.memory import Memory

OPEN_STATES = ("scheduled", "sending", "retrying", "parked")


class Totals(Struct, frozen=True):
    """All counts are deliveries; `accepted = delivered + open + dead + lost`."""

    accepted: int
    delivered: int
    open: int
    dead: int
    lost: int
    duplicated: int  # requests that reached a receiver after it had answered that delivery with 2xx

    def line(self, seconds: float) -> str:
        """The last line of the demonstration."""
        return (
            f"demo: accepted={self.accepted} delivered={self.delivered} open={self.open} dead={self.dead}"
            f" lost={self.lost} duplicated={self.duplicated} seconds={seconds:.1f}"
        )


def tally(
    accepted: Mapping[str, int], deliveries: Iterable[Mapping[str, Any]], memories: Iterable[Memory]
) -> Totals:
    """Add it all up.

    accepted    deliveries the server promised for each event, by event id
    deliveries  the API's deliveries, each at most counted once; those of other events do not count
    memories    what the receivers saw
    """
    sights = {delivery: sight for memory in memories for delivery, sight in memory.seen.items()}
    states = {d["id"]: d["state"] for d in deliveries if d["event"] in accepted}
    delivered = sum(1 for id, state in states.items() if state == "delivered" and id in sights)
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
    )


def by_endpoint(
    names: Mapping[str, str], deliveries: Iterable[Mapping[str, Any]]
) -> dict[str, dict[str, int]]:
    """How many deliveries each receiver has in each state; `names` is endpoint id to receiver."""
    counts: dict[str, dict[str, int]] = {name: {} for name in names.values()}
    for delivery in deliveries:
        states = counts[names[delivery["endpoint"]]]
        states[delivery["state"]] = states.get(delivery["state"], 0) + 1
    return counts
