"""The inbox's counters in the Prometheus text format. Nothing is kept here: a scrape reads what the inbox has.

This needs the `prometheus-client` package (`pip install 'surehook[inbox,metrics]'`), which is loaded when it is first used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from surehook.core.errors import SettingsError
from surehook.core.histogram import Histogram
from surehook.inbox.watch import Watch

try:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
    from prometheus_client.exposition import generate_latest
except ImportError:
    raise SettingsError(
        "metrics", "the prometheus-client package is needed", hint="pip install 'surehook[inbox,metrics]'"
    ) from None

PREFIX = "surehook_inbox_"
STATES = ("ready", "scheduled", "held", "parked", "dead")
Values = Mapping[Any, float]  # label values (a tuple) → value


class Collector:
    """A collector of `prometheus_client`: `REGISTRY.register(inbox.collector())`.

    `refusals` gives requests that were refused, by source and code; `now` Unix milliseconds.
    """

    def __init__(
        self, watch: Watch, refusals: Callable[[], Mapping[tuple[str, str], int]], now: Callable[[], int]
    ) -> None:
        self._watch = watch
        self._refusals = refusals
        self._now = now

    def render(self) -> bytes:
        """Render the exposition of this collector alone."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry)

    def describe(self) -> Iterable[Metric]:
        """Give the names alone, so that registering asks nothing of the inbox."""
        return self.collect()

    def collect(self) -> Iterable[Metric]:
        w = self._watch
        yield _counter(
            "events", "Believed and stored events by what they were.", ["source", "kind"], w.events
        )
        yield _counter(
            "duplicates",
            "Repeats, by what tells their cause.",
            ["source", "retry", "replay", "handler_version"],
            w.duplicates,
        )
        yield _counter("queued", "Requests that a broker confirmed, by source.", ["source"], _keyed(w.queued))
        yield _counter("refusals", "Requests refused, by code.", ["source", "code"], self._refusals())
        yield _counter("runs", "Runs of events by how they ended.", ["source", "state", "replay"], w.runs)
        failing = ["source", "code", "handler_version"]
        yield _counter("retries", "Runs put off to be tried again.", failing, w.retries)
        yield _counter("dead_letters", "Runs given up.", failing, w.dead)
        yield _counter(
            "decisions",
            "Decisions about documents.",
            ["source", "document_type", "verdict", "rule"],
            w.decisions,
        )
        yield _counter("changed_results", "Replays with another result.", ["source"], _keyed(w.changed))
        yield _counter(
            "lost_leases", "Runs that another worker had taken meanwhile.", [], {(): w.lost_leases}
        )
        yield _histograms(
            "processing_latency_seconds", "From arrival to committed effects.", "source", w.latency
        )
        now = self._now()
        depth = {(one.source, state): getattr(one, state) for one in w.depth for state in STATES}
        yield _gauge("depth", "Runs that wait, as of the last look.", ["source", "state"], depth)
        oldest = {
            (one.source,): 0.0 if one.oldest_due_at is None else max(now - one.oldest_due_at, 0) / 1000
            for one in w.depth
        }
        yield _gauge("oldest_due_seconds", "Age of the oldest due run.", ["source"], oldest)
        queue = {} if w.queue is None else {("waiting",): w.queue.waiting, ("aside",): w.queue.aside}
        yield _gauge("queue_messages", "Messages in the queue, as of the last look.", ["state"], queue)
        looked = {} if w.looked_at is None else {(): w.looked_at / 1000}
        yield _gauge("looked_timestamp_seconds", "When depth was last looked at.", [], looked)


def _keyed(values: Mapping[str, float]) -> dict[tuple[str, ...], float]:
    return {(key,): value for key, value in values.items()}


def _counter(name: str, text: str, labels: Sequence[str], values: Values) -> Metric:
    return _filled(CounterMetricFamily(PREFIX + name, text, labels=labels), values)


def _gauge(name: str, text: str, labels: Sequence[str], values: Values) -> Metric:
    return _filled(GaugeMetricFamily(PREFIX + name, text, labels=labels), values)


def _filled(family: Any, values: Values) -> Metric:
    for key, value in list(values.items()):  # a copy: others go on counting
        family.add_metric(list(key), value)
    return family  # type: ignore[no-any-return]


def _histograms(name: str, text: str, label: str, values: Mapping[str, Histogram]) -> Metric:
    family = HistogramMetricFamily(PREFIX + name, text, labels=[label])
    for key, histogram in list(values.items()):
        so_far = 0
        buckets: list[tuple[str, float]] = []
        counts = list(histogram.buckets)
        for bound, count in zip(
            [*(repr(one / 1000) for one in histogram.bounds), "+Inf"], counts, strict=True
        ):
            so_far += count
            buckets.append((bound, so_far))
        family.add_metric([key], buckets=buckets, sum_value=histogram.total / 1000)
    return family
