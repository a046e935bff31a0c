"""Account of a series of kills, from three logs: kills, acknowledgements, arrivals. Pure.

A delivery is *interrupted* by a kill when it was acknowledged, or had already arrived, before the kill
and its (next) arrival comes after. It is charged to the first kill that stood between the two, so a straggler
that arrives two kills later shows its whole delay. A request for a delivery that had arrived before, with no
kill in between, has no excuse and is counted apart.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import msgspec

from lab.bench.figures import spread
from lab.bench.records import Arrivals, Sent


class Kill(msgspec.Struct, kw_only=True):
    """One kill and the start after it; monotonic nanoseconds."""

    killed_ns: int
    started_ns: int  # just before the new process existed
    ready_s: float  # from there until /readyz
    in_flight: int  # what /v1/lanes said a moment before


class Toll(msgspec.Struct, kw_only=True):
    """Cost of one kill."""

    first_send_s: float | None = None  # from the start to the first arrival after it
    interrupted: int = 0
    last_interrupted_s: float | None = None  # from the start to the arrival of the last of these
    sent_again: int = 0  # of these, requests for deliveries that had reached the sink before


def tolls(kills: list[Kill], sent: Sent, arrivals: Arrivals) -> tuple[list[Toll], int]:
    """Cost of each kill, and the number of repeated requests that no kill explains."""
    ids, _, accepted_at = sent.rows()
    accepted = dict(zip(ids, accepted_at, strict=True))
    # What the old process sent is read a moment after the signal, but before the new process is started.
    instants = [kill.started_ns for kill in kills]
    found = [Toll() for _ in kills]
    before: dict[bytes, int] = {}  # delivery -> its latest arrival
    unexplained = 0
    deliveries, events, at, _ = arrivals.rows()
    for delivery, event, now in zip(deliveries, events, at, strict=True):
        earlier = before.get(delivery)
        before[delivery] = now
        since = earlier if earlier is not None else accepted.get(event, now)
        number = bisect_left(instants, since)
        excused = number < len(kills) and instants[number] < now
        if excused:
            toll, seconds = found[number], (now - kills[number].started_ns) / 1e9
            toll.interrupted += 1
            toll.last_interrupted_s = max(toll.last_interrupted_s or 0.0, seconds)
            toll.sent_again += earlier is not None
        elif earlier is not None:
            unexplained += 1
    for kill, toll in zip(kills, found, strict=True):
        number = bisect_left(at, kill.started_ns)
        if number < len(at):
            toll.first_send_s = (at[number] - kill.started_ns) / 1e9
    return found, unexplained


def account(kills: list[Kill], sent: Sent, arrivals: Arrivals, bound: int) -> dict[str, Any]:
    """The one document of a campaign. `bound` is the most requests that one kill may repeat.

    All requests that were repeated are held against the bound, also those whose first arrival got no answer
    because the sender was gone; `duplicated` are those that the sink had answered with 2xx.
    """
    each, unexplained = tolls(kills, sent, arrivals)
    deliveries, events, _, _ = arrivals.rows()
    acknowledged = set(sent.rows()[0])
    arrived = {d for d, e in zip(deliveries, events, strict=True) if e in acknowledged}
    delivered = len(arrived - arrivals.without_success())
    worst = max((toll.sent_again for toll in each), default=0)
    return {
        "scenario": "kill9",
        "kills": len(kills),
        "attempted": sent.attempted,
        "acknowledged": len(acknowledged),
        "accepted": sent.deliveries,
        "delivered": delivered,
        "lost": sent.deliveries - delivered,
        "duplicated": arrivals.duplicated,
        "sent_again_per_kill": spread((toll.sent_again for toll in each), digits=0),
        "sent_again_bound": bound,
        "within_bound": worst <= bound,
        "unexplained_repeats": unexplained,
        "refused": sent.refused,
        "unanswered": sent.unanswered,
        "interrupted": sum(toll.interrupted for toll in each),
        "ready_s": spread(kill.ready_s for kill in kills),
        "first_send_s": spread(toll.first_send_s for toll in each if toll.first_send_s is not None),
        "last_interrupted_s": spread(
            toll.last_interrupted_s for toll in each if toll.last_interrupted_s is not None
        ),
        "each": [
            {
                "in_flight": kill.in_flight,
                "ready_s": round(kill.ready_s, 3),
                "first_send_s": None if toll.first_send_s is None else round(toll.first_send_s, 3),
                "interrupted": toll.interrupted,
                "last_interrupted_s": (
                    None if toll.last_interrupted_s is None else round(toll.last_interrupted_s, 3)
                ),
                "sent_again": toll.sent_again,
            }
            for kill, toll in zip(kills, each, strict=True)
        ],
    }


def passed(result: dict[str, Any]) -> bool:
    """True where nothing was lost, every duplicate has a kill to explain it, and no kill had too many."""
    return bool(
        result["lost"] == 0
        and result["unexplained_repeats"] == 0
        and result["within_bound"]
        and result["acknowledged"] > 0
        and result["delivered"] > 0
    )
