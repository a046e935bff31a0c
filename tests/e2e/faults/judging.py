"""What a series of faults did to a fleet, from three logs: faults, acknowledgements, arrivals. Pure.

A delivery may be sent twice because of a fault if its earlier request came before the fault was over and the later one
after it had begun. It is charged to the first fault for which that holds. A repeat that no fault excuses is a defect:
two nodes had the same delivery, or one forgot what it had done.

A delivery *waited through* a fault when it was acknowledged, or had arrived without being recorded, before the fault
began, and its (next) request came after. How long the last of these took is how long the fault's victims waited.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from lab.bench.records import Arrivals, Sent

# What a process wrote before a signal is read by the sink a little later, on a machine that has more to do.
SLACK_NS = 250_000_000
# A 202 whose commit came just before the ledger went is written by a busy process a little later.
AWAY_SLACK_NS = 500_000_000


@dataclass(frozen=True)
class Hit:
    """One fault; monotonic nanoseconds."""

    begun_ns: int
    over_ns: int  # for a kill the same instant: what is repeated was sent before it
    timed_ns: int  # where waits are counted from: the kill, or the start after it
    kind: str  # faults of a kind are timed together


@dataclass
class Toll:
    """What one fault cost."""

    repeated: int = 0
    waited: int = 0
    longest_s: float = 0.0  # from `timed_ns` to the last request for what waited


@dataclass
class Verdict:
    """What a run has shown; `defects` is empty when all promises held."""

    figures: dict[str, Any] = field(default_factory=dict)
    defects: list[str] = field(default_factory=list)


class Repeat(NamedTuple):
    """A request for what had come before, with no fault between that excuses it."""

    delivery: bytes
    path: str
    earlier_ns: int
    now_ns: int

    def told(self, hits: Sequence[Hit]) -> str:
        """When its two requests came, by the last fault that had begun before the first of them."""
        begun = [hit.begun_ns for hit in hits if hit.begun_ns <= self.earlier_ns]
        since, name = (begun[-1], "a fault began") if begun else (self.earlier_ns, "the first came")
        first, second = (self.earlier_ns - since) / 1e9, (self.now_ns - since) / 1e9
        return f"{self.delivery.decode()} on {self.path} at {first:.3f} and {second:.3f} s after {name}"


def tolls(
    hits: Sequence[Hit], accepted: dict[bytes, int], arrivals: Arrivals
) -> tuple[list[Toll], list[Repeat]]:
    """What each fault cost, and the repeats that none excuses. `hits` are in order of `begun_ns`."""
    found = [Toll() for _ in hits]
    ends = [hit.over_ns + SLACK_NS for hit in hits]
    before: dict[bytes, int] = {}
    unexcused: list[Repeat] = []
    for delivery, event, now, path in zip(*arrivals.rows(), strict=True):
        earlier = before.get(delivery)
        before[delivery] = now
        since = earlier if earlier is not None else accepted.get(event, now)
        number = bisect_left(ends, since)
        if number < len(hits) and hits[number].begun_ns < now:
            toll = found[number]
            toll.repeated += earlier is not None
            if since <= hits[number].begun_ns and now > hits[number].timed_ns:
                toll.waited += 1
                toll.longest_s = max(toll.longest_s, (now - hits[number].timed_ns) / 1e9)
        elif earlier is not None:
            unexcused.append(Repeat(delivery, arrivals.paths[path], earlier, now))
    return found, unexcused


def judge(
    hits: Sequence[Hit],
    sents: Sequence[Sent],
    arrivals: Arrivals,
    *,
    endpoints: int,
    bound: int,
    away: Sequence[tuple[int, int]] = (),
) -> Verdict:
    """Whether every acknowledged event reached every endpoint, and only faults sent anything twice.

    endpoints  how many deliveries each event has
    bound      the most requests that one fault may repeat
    away       from when until when there was no ledger, so that nothing could be accepted
    """
    hits = sorted(hits, key=lambda hit: hit.begun_ns)
    assert all(hit.over_ns <= after.over_ns for hit, after in pairwise(hits)), hits
    accepted: dict[bytes, int] = {}
    for sent in sents:
        ids, _, at = sent.rows()
        accepted.update(zip(ids, at, strict=True))
    each, unexcused = tolls(hits, accepted, arrivals)
    made: dict[bytes, set[bytes]] = defaultdict(set)  # event -> its deliveries
    deliveries, events, _, _ = arrivals.rows()
    for delivery, event in zip(deliveries, events, strict=True):
        made[event].add(delivery)
    unanswered = arrivals.without_success()
    lost = {event for event in accepted if len(made[event] - unanswered) < endpoints}
    doubled = [event for event, ours in made.items() if len(ours) > endpoints]
    false = sum(gone + AWAY_SLACK_NS < at < back for at in accepted.values() for gone, back in away)
    promised = sum(sent.deliveries for sent in sents)
    bare = sum(sent.bare_503 for sent in sents)
    statuses: dict[str, int] = defaultdict(int)
    for sent in sents:
        for status, count in sent.statuses.items():
            statuses[status] += count
    worst = max((toll.repeated for toll in each), default=0)
    verdict = Verdict()
    verdict.figures = {
        "accepted": len(accepted) * endpoints,
        "lost": len(lost),
        "duplicated": len(deliveries) - len(set(deliveries)),
        "most_per_fault": worst,
        "faults": len(hits),
        "refused": statuses["503"],
        **_waits(hits, each),
    }
    checks = {
        f"{len(lost)} acknowledged events did not reach all endpoints, such as {sorted(lost)[:3]}": lost,
        f"{len(doubled)} events were fanned out twice, such as {doubled[:3]}": doubled,
        f"{len(unexcused)} requests repeat others without a fault between, such as "
        + "; ".join(repeat.told(hits) for repeat in unexcused[:3]): unexcused,
        f"{worst} requests were repeated after one fault, {bound} may be": worst > bound,
        f"{false} events were acknowledged while there was no ledger": false,
        f"{bare} answers 503 had no Retry-After": bare,
        f"answers neither 202 nor 503: {dict(statuses)}": statuses.keys() - {"202", "503"},
        f"the answers promised {promised} deliveries of {len(accepted)} events": promised
        != len(accepted) * endpoints,
        "nothing was accepted": not accepted,
    }
    verdict.defects = [text for text, wrong in checks.items() if wrong]
    return verdict


def _waits(hits: Sequence[Hit], each: Sequence[Toll]) -> dict[str, list[float]]:
    """By kind of fault, the longest wait of each fault that anything waited through."""
    found: dict[str, list[float]] = {}
    for hit, toll in zip(hits, each, strict=True):
        if toll.waited:
            found.setdefault(f"{hit.kind}_s", []).append(round(toll.longest_s, 2))
    return found
