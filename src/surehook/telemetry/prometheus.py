"""The engine's counters in the Prometheus text format. Nothing is kept here: a scrape reads what the engine has.

Labels are from closed lists (lane, outcome, state, reason, kind, route, status); an endpoint or a tenant is never a label,
because their number is the customers' to choose.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import chain
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

from surehook.core.outbox import OutboxFigures
from surehook.core.steps import Steps

PREFIX = "surehook_"
FAMILY_COST, SAMPLE_COST = 4_096, 1_024  # of rendering (core/steps.py)
Values = Mapping[Any, float]  # label values (a tuple) → value


class Buckets(Protocol):
    @property
    def bounds(self) -> Sequence[int]: ...
    @property
    def buckets(self) -> Sequence[int]: ...
    @property
    def total(self) -> int: ...


class MetricsSnapshot(Struct, frozen=True):
    """The values of one scrape. Counters are since the start of the process; depths are as of the last count."""

    accepted: int
    attempts: Mapping[tuple[str, str], int]  # (lane, outcome)
    retries: int
    finished: Mapping[str, int]  # by end state
    notices: Mapping[str, int]  # by kind
    receipts: Mapping[str, int]  # by stage
    calls: Mapping[str, int]  # by kind: outgoing calls that callers of the API started
    calls_begun: Mapping[str, int]
    calls_refused: Mapping[tuple[str, str], int]  # (kind, endpoint | tenant | process)
    latency: Buckets
    lateness: Buckets
    in_flight: Mapping[str, int]  # by lane
    slots: Mapping[str, int]
    depth: Mapping[tuple[str, str], int]  # (lane, ready | held | scheduled | parked)
    oldest_due_s: Mapping[str, float]  # by lane
    unserved: Mapping[str, int]  # by lane: 1 where nobody takes its work
    parked: Mapping[str, int]  # by reason
    memory_deliveries: int
    waiting_events: int
    requests: Mapping[tuple[str, str, int], int]  # (method, route, status)
    request_times: Mapping[tuple[str, str], Buckets]  # (method, route)
    connections: tuple[int, int]  # open, allowed
    body_bytes: tuple[int, int]  # of bodies being read, allowed
    refused: Mapping[str, int]  # by reason: what the server refused by itself
    breakers: Mapping[str, int]  # by state
    endpoints: Mapping[str, int]  # by status
    dead_letters: int | None  # None: not known now
    ledger_refused: int  # calls that it could not answer
    ledger_bytes: int | None  # None: not on a disk, or not known now
    ledger_free_bytes: int | None
    ledger_floor_bytes: int | None
    descriptors: tuple[int, int]  # open, allowed
    resident_bytes: int
    loop_lateness: Buckets
    build: Mapping[str, str]
    upkeep_late_s: Mapping[str, float]  # by purpose
    outbox: OutboxFigures | None  # None: this process reads none


class PrometheusMetrics:
    """Renders what `snapshot` answers with. `always`: labels of every sample, that tell this process from others
    behind the same address."""

    def __init__(
        self, snapshot: Callable[[], Awaitable[MetricsSnapshot]], *, always: Mapping[str, str] | None = None
    ) -> None:
        self._snapshot = snapshot
        self._always = dict(always or {})

    async def rendering(self) -> Steps[bytes]:
        """The whole exposition of what there is now, in steps."""
        return self._rendering(await self._snapshot())

    def _rendering(self, snapshot: MetricsSnapshot) -> Steps[bytes]:
        parts: list[bytes] = []
        of_outbox = () if snapshot.outbox is None else outbox_families(snapshot.outbox)
        for family in chain(_deliveries(snapshot), _door(snapshot), _process(snapshot), of_outbox):
            family.samples = [
                sample._replace(labels={**self._always, **sample.labels}) for sample in family.samples
            ]
            registry = CollectorRegistry(auto_describe=False)
            registry.register(_One(family))
            parts.append(generate_latest(registry))
            yield FAMILY_COST + SAMPLE_COST * len(family.samples)
        return b"".join(parts)


class OutboxCollector:
    """The figures of a relay as prometheus_client collects them."""

    def __init__(self, figures: Callable[[], OutboxFigures]) -> None:
        self._figures = figures

    def collect(self) -> Iterable[Metric]:
        return outbox_families(self._figures())


class _One:
    """A family as prometheus_client collects it."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterable[Metric]:
        return (self._family,)


def _deliveries(s: MetricsSnapshot) -> Iterable[Metric]:
    yield _counter("accepted_events", "Events answered 202, repeats not counted.", [], {(): s.accepted})
    yield _counter("attempts", "Requests by lane and outcome.", ["lane", "outcome"], s.attempts)
    yield _counter("retries", "Requests after the first of a delivery.", [], {(): s.retries})
    yield _counter("finished", "Deliveries by end state.", ["state"], _keyed(s.finished))
    yield _counter("notices", "Notices by kind.", ["kind"], _keyed(s.notices))
    yield _counter("receipts", "Stages that events reached by receipts.", ["stage"], _keyed(s.receipts))
    yield _histogram("delivery_latency_seconds", "From acceptance to the delivered answer.", {(): s.latency})
    yield _histogram(
        "retry_lateness_seconds", "From a retry's due time to its start, parking left out.", {(): s.lateness}
    )
    yield _gauge("in_flight_requests", "Requests under way.", ["lane"], _keyed(s.in_flight))
    yield _gauge("slots", "Requests that may be under way.", ["lane"], _keyed(s.slots))
    yield _gauge(
        "lane_deliveries", "Unfinished deliveries by what they wait for.", ["lane", "state"], s.depth
    )
    yield _gauge(
        "lane_oldest_due_seconds", "Age of the oldest due delivery.", ["lane"], _keyed(s.oldest_due_s)
    )
    yield _gauge(
        "lane_unserved", "1 where work is due and no process takes it.", ["lane"], _keyed(s.unserved)
    )
    yield _gauge("parked_deliveries", "Parked deliveries by reason.", ["reason"], _keyed(s.parked))
    yield _gauge("memory_deliveries", "Deliveries kept in memory.", [], {(): s.memory_deliveries})
    yield _gauge("waiting_events", "Events waiting for their commit.", [], {(): s.waiting_events})
    text = "Since when a look at something is due."
    yield _gauge("upkeep_late_seconds", text, ["purpose"], _keyed(s.upkeep_late_s))
    yield _gauge("breakers", "Breakers that are not closed, by state.", ["state"], _keyed(s.breakers))
    yield _gauge("endpoints", "Endpoints by status.", ["status"], _keyed(s.endpoints))


def outbox_families(s: OutboxFigures) -> Iterable[Metric]:
    """The metrics of whoever reads an outbox."""
    yield _counter("outbox_published", "Rows published, repeats included.", [], {(): s.published})
    yield _counter("outbox_refused", "Rows put aside.", [], {(): s.refused})
    rows = {("waiting",): s.waiting, ("refused",): s.aside}
    yield _gauge(
        "outbox_rows", "Rows as of the last count, a quarter of a minute ago at most.", ["state"], rows
    )
    yield _gauge("outbox_lag_seconds", "For how long the oldest row has waited.", [], {(): s.lag_s})
    text = "1 while the server or the database is away."
    yield _gauge("outbox_troubled", text, [], {(): int(s.is_troubled)})


def _door(s: MetricsSnapshot) -> Iterable[Metric]:
    requests = {(method, route, str(status)): count for (method, route, status), count in s.requests.items()}
    labels = ["method", "route", "status"]
    yield _counter("http_requests", "Requests to the API; 499: the caller hung up.", labels, requests)
    text = "From the head of a request to the end of its answer."
    yield _histogram("http_request_seconds", text, s.request_times, ["method", "route"])
    yield _gauge("caller_calls", "Outgoing calls of callers under way.", ["kind"], _keyed(s.calls))
    text = "Outgoing calls that callers started: test calls, checks of URLs."
    yield _counter("caller_calls_begun", text, ["kind"], _keyed(s.calls_begun))
    text = "Those that were refused, by whose bound was reached."
    yield _counter("caller_calls_refused", text, ["kind", "bound"], s.calls_refused)
    for name, text, value in (
        ("http_open_connections", "Callers that are connected.", s.connections[0]),
        ("http_allowed_connections", "Callers that may be connected.", s.connections[1]),
        (
            "http_body_bytes",
            "Bytes of request bodies from their first byte to their answer.",
            s.body_bytes[0],
        ),
        ("http_allowed_body_bytes", "Bytes of request bodies that there may be.", s.body_bytes[1]),
    ):
        yield _gauge(name, text, [], {(): value})
    text = "Requests and connections ended for a bound of the server, by reason."
    yield _counter("http_refused", text, ["reason"], _keyed(s.refused))


def _process(s: MetricsSnapshot) -> Iterable[Metric]:
    for name, text, value in (
        ("dead_letters", "Deliveries that gave up and were neither replayed nor dismissed.", s.dead_letters),
        ("ledger_bytes", "Bytes of the ledger on its disk.", s.ledger_bytes),
        ("ledger_disk_free_bytes", "Free bytes on the disk of the ledger.", s.ledger_free_bytes),
        ("ledger_disk_floor_bytes", "Free bytes below which no event is taken.", s.ledger_floor_bytes),
        ("process_open_descriptors", "Open files and connections.", s.descriptors[0]),
        ("process_allowed_descriptors", "Files and connections that may be open.", s.descriptors[1]),
        ("process_resident_bytes", "Memory that the process occupies.", s.resident_bytes),
    ):
        if value is not None:
            yield _gauge(name, text, [], {(): value})
    text = "Calls that the ledger could not answer."
    yield _counter("ledger_refused_calls", text, [], {(): s.ledger_refused})
    yield _histogram(
        "loop_lateness_seconds", "How late a timer of the event loop fires.", {(): s.loop_lateness}
    )
    yield _gauge("build_info", "What runs; always 1.", list(s.build), {tuple(s.build.values()): 1})


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


def _histogram(name: str, text: str, values: Mapping[Any, Buckets], labels: Sequence[str] = ()) -> Metric:
    family = HistogramMetricFamily(PREFIX + name, text, labels=labels)
    for key, counts in values.items():
        so_far = 0
        buckets: list[tuple[str, float]] = []
        for bound, count in zip(counts.bounds, counts.buckets, strict=False):
            so_far += count
            buckets.append((repr(bound / 1000), so_far))
        so_far += counts.buckets[-1]
        buckets.append(("+Inf", so_far))
        family.add_metric(list(key), buckets=buckets, sum_value=counts.total / 1000)
    return family
