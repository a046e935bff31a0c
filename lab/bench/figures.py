"""Figures from what the generator and the sink wrote down. Pure: values in, values out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from lab.bench.records import Arrivals, Sent

MS = 1e6  # nanoseconds


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """The nearest-rank percentile of sorted values; None of nothing."""
    if not ordered:
        return None
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def spread(values: Iterable[float], *, digits: int = 2) -> dict[str, float | None]:
    """p50, p95, p99 and the largest."""
    ordered = sorted(values)
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    found = {name: percentile(ordered, share) for name, share in shares.items()}
    return {name: None if value is None else round(value, digits) for name, value in found.items()}


class Joined:
    """One run: what was accepted beside what arrived.

    Only arrivals of events in `sent` count, so several loads on one sink can be told apart. Where a run
    has arrivals of one path to leave out (endpoints that hang), `paths` names the ones to keep.
    """

    def __init__(self, sent: Sequence[Sent], arrivals: Arrivals, *, paths: str = "") -> None:
        self.accepted: dict[bytes, int] = {}  # event -> when its 202 was complete
        self.meant: dict[bytes, int] = {}  # event -> when its request was meant to leave
        for one in sent:
            ids, meant, accepted = one.rows()
            self.accepted.update(zip(ids, accepted, strict=True))
            self.meant.update(zip(ids, meant, strict=True))
        self.expected = sum(one.deliveries for one in sent)
        self.first: dict[bytes, tuple[bytes, int]] = {}  # delivery -> its event and first arrival
        keep = [name.startswith(paths) for name in arrivals.paths]
        for delivery, event, at, path in zip(*arrivals.rows(), strict=True):
            if event in self.meant and keep[path] and delivery not in self.first:
                self.first[delivery] = (event, at)
        self.delivered = len(self.first.keys() - arrivals.without_success())
        self.duplicated = arrivals.duplicated

    @property
    def lost(self) -> int:
        """Deliveries that were promised by a 202 and never answered with 2xx."""
        return self.expected - self.delivered

    def accept_ms(self) -> dict[str, float | None]:
        """Meant instant to 202."""
        return spread((self.accepted[event] - meant) / MS for event, meant in self.meant.items())

    def arrival_ms(self, since: int = 0, until: int = 1 << 63) -> dict[str, float | None]:
        """Meant instant to first arrival, of events meant in [since, until)."""
        return spread(
            (at - self.meant[event]) / MS
            for event, at in self.first.values()
            if since <= self.meant[event] < until
        )

    def missing_at(self, instant: int) -> int:
        """Deliveries accepted before an instant that had not arrived by then."""
        accepted = sum(at <= instant for at in self.accepted.values())
        per_event = self.expected / max(1, len(self.accepted))
        arrived = sum(at <= instant and self.accepted[event] <= instant for event, at in self.first.values())
        return round(accepted * per_event) - arrived


def batch_sizes(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """The mean size of each kind of batch, from the histograms of /metrics whose name speaks of batches."""
    means: dict[str, float] = {}
    for name, count in after.items():
        family, found, labels = name.partition("_count")
        total = f"{family}_sum{labels}"
        if not found or "batch" not in family or total not in after:
            continue
        times = count - before.get(name, 0.0)
        if times > 0:
            means[(family + labels).removeprefix("surehook_")] = round(
                (after[total] - before.get(total, 0.0)) / times, 1
            )
    return means


def flat(row: dict[str, Any]) -> dict[str, Any]:
    """A result with its nested figures as one level, for tables."""
    out: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            out.update({f"{name} {inner}": figure for inner, figure in value.items()})
        elif not isinstance(value, list):
            out[name] = value
    return out
