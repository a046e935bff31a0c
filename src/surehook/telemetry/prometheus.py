"""The engine's counters in the Prometheus text format. Nothing is kept here: a scrape reads what the engine has.

Labels are from closed lists (lane, outcome, state, reason, kind); an endpoint or a tenant is never a label,
because their number is the customers' to choose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct
from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import generate_latest

PREFIX = "surehook_"
Values = Mapping[Any, float]  # label values (a tuple) → value


class Buckets(Protocol):
    @property
    def bounds(self) -> Sequence[int]: ...
    @property
    def buckets(self) -> Sequence[int]: ...
    @property
    def total(self) -> int: ...


class Snapshot(Struct, frozen=True):
    """What a scrape shows. Counters are since the start of the process; depths are as of the last ten-second look."""

    accepted: int
    attempts: Mapping[tuple[str, str], int]  # (lane, outcome)
    retries: int
    finished: Mapping[str, int]  # by end state
    notices: Mapping[str, int]  # by kind
    receipts: Mapping[str, int]  # by stage
    latency: Buckets
    lateness: Buckets
    in_flight: Mapping[str, int]  # by lane
    slots: Mapping[str, int]
    depth: Mapping[tuple[str, str], int]  # (lane, ready | in_flight | scheduled | parked)
    oldest_due_s: Mapping[str, float]  # by lane
    parked: Mapping[str, int]  # by reason
    memory_deliveries: int
    waiting_events: int


class PrometheusMetrics:
    """Renders what `snapshot` answers with. `always`: labels of every sample, that tell this process from others
    behind the same address."""

    def __init__(self, snapshot: Callable[[], Snapshot], *, always: Mapping[str, str] | None = None) -> None:
        self._snapshot = snapshot
        self._always = dict(always or {})
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def render(self) -> bytes:
        """The whole exposition."""
        return generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        for family in self._families(self._snapshot()):
            family.samples = [
                sample._replace(labels={**self._always, **sample.labels}) for sample in family.samples
            ]
            yield family

    def _families(self, s: Snapshot) -> Iterable[Metric]:
        yield _counter("accepted_events", "Events answered 202, repeats not counted.", [], {(): s.accepted})
        yield _counter("attempts", "Requests by lane and outcome.", ["lane", "outcome"], s.attempts)
        yield _counter("retries", "Requests after the first of a delivery.", [], {(): s.retries})
        yield _counter("finished", "Deliveries by end state.", ["state"], _keyed(s.finished))
        yield _counter("notices", "Notices by kind.", ["kind"], _keyed(s.notices))
        yield _counter("receipts", "Stages that events reached by receipts.", ["stage"], _keyed(s.receipts))
        yield _histogram("delivery_latency_seconds", "From acceptance to the delivered answer.", s.latency)
        yield _histogram("retry_lateness_seconds", "From a retry's due time to its start.", s.lateness)
        yield _gauge("in_flight_requests", "Requests under way.", ["lane"], _keyed(s.in_flight))
        yield _gauge("slots", "Requests that may be under way.", ["lane"], _keyed(s.slots))
        yield _gauge(
            "lane_deliveries", "Unfinished deliveries by what they wait for.", ["lane", "state"], s.depth
        )
        yield _gauge(
            "lane_oldest_due_seconds", "Age of the oldest due delivery.", ["lane"], _keyed(s.oldest_due_s)
        )
        yield _gauge("parked_deliveries", "Parked deliveries by reason.", ["reason"], _keyed(s.parked))
        yield _gauge("memory_deliveries", "Deliveries kept in memory.", [], {(): s.memory_deliveries})
        yield _gauge("waiting_events", "Events waiting for their commit.", [], {(): s.waiting_events})


def _keyed(values: Mapping[str, float]) -> dict[tuple[str, ...], float]:
    return {(key,): value for key, value in values.items()}


def _counter(name: str, text: str, labels: list[str], values: Values) -> Metric:
    family = CounterMetricFamily(PREFIX + name, text, labels=labels)
    for key, value in values.items():
        family.add_metric(list(key), value)
    return family


def _gauge(name: str, text: str, labels: list[str], values: Values) -> Metric:
    family = GaugeMetricFamily(PREFIX + name, text, labels=labels)
    for key, value in values.items():
        family.add_metric(list(key), value)
    return family


def _histogram(name: str, text: str, values: Buckets) -> Metric:
    family = HistogramMetricFamily(PREFIX + name, text)
    so_far = 0
    buckets: list[tuple[str, float]] = []
    for bound, count in zip(values.bounds, values.buckets, strict=False):
        so_far += count
        buckets.append((repr(bound / 1000), so_far))
    so_far += values.buckets[-1]
    buckets.append(("+Inf", so_far))
    family.add_metric([], buckets=buckets, sum_value=values.total / 1000)
    return family
