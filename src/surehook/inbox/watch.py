"""Counters of an inbox: plain integers since the start of this process, read by whoever renders metrics.

Labels come from closed lists, from the application's own definitions (sources, document types, handler versions), never
from what a sender writes: its event ids and tenants are as many as it likes. What is counted after a commit is counted
after it, so a number never claims what was not kept.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import TypeVar

from surehook.core.histogram import Histogram
from surehook.inbox.batch_results import BatchResult
from surehook.inbox.queue.port import Length
from surehook.ports.inbox import Stored
from surehook.ports.inbox_depth import Depth

# Upper bounds in milliseconds; the last bucket is open. From "at once" to "somebody repaired it days later".
LATENCY_MS = (
    5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 3_600_000, 86_400_000,
)  # fmt: skip

# Where senders say how often they have tried before. None of these is signed: good for a label, for no decision.
RETRY_HEADERS = ("webhook-retry-count", "x-yousign-retry-count", "x-yousign-retry", "x-slack-retry-num")
REPLAY_HEADER = "webhook-replay"
_RETRIES = {0: "0", 1: "1", 2: "2", 3: "3-5", 4: "3-5", 5: "3-5"}

K = TypeVar("K")
Pairs = Iterable[tuple[str, str]]


def retry_of(headers: Pairs) -> str:
    """Label the sender's earlier tries: `0`, `1`, `2`, `3-5`, `6+`, or `unknown` where it does not say."""
    for name, value in headers:
        if name.lower() in RETRY_HEADERS and value.isascii() and value.isdigit() and len(value) < 10:
            return _RETRIES.get(int(value), "6+")
    return "unknown"


def is_replay(headers: Pairs) -> bool:
    """Tell whether the sender says that somebody asked it to send this again."""
    return any(name.lower() == REPLAY_HEADER and value == "1" for name, value in headers)


class Watch:
    """Counters since the start of this process. Safe for threads: one lock a request or batch."""

    def __init__(self) -> None:
        self.events: dict[tuple[str, str], int] = {}  # (source, new | duplicate | conflict)
        self.duplicates: dict[tuple[str, str, str, str], int] = {}  # (source, retry, replay, handler version)
        self.runs: dict[tuple[str, str, str], int] = {}  # (source, state, replay)
        self.retries: dict[tuple[str, str, str], int] = {}  # (source, code, handler version)
        self.dead: dict[tuple[str, str, str], int] = {}  # the same
        self.decisions: dict[tuple[str, str, str, str], int] = {}  # (source, document type, verdict, rule)
        self.changed: dict[str, int] = {}  # by source
        self.latency: dict[str, Histogram] = {}  # by source: arrival to committed effects
        self.lost_leases = 0
        self.depth: Sequence[Depth] = ()  # as of the last look
        self.looked_at: int | None = None  # Unix milliseconds
        self.queued: dict[str, int] = {}  # by source
        self.queue: Length | None = None  # as of the last look
        self._lock = threading.Lock()

    def arrived(self, source: str, ends: Sequence[Stored]) -> None:
        """Count one stored request."""
        with self._lock:
            for end in ends:
                _count(self.events, (source, end.kind))

    def put_in_queue(self, source: str) -> None:
        """Count one request that a broker has confirmed."""
        with self._lock:
            _count(self.queued, source)

    def saw_queue(self, length: Length | None) -> None:
        """Note the length of the queue; None: nobody could look."""
        self.queue = length

    def duplicate(self, source: str, headers: Pairs, version: str) -> None:
        """Count one event that was here already; `version` of the handlers that would have had it."""
        headers = list(headers)
        labels = (source, retry_of(headers), "yes" if is_replay(headers) else "no", version)
        with self._lock:
            _count(self.duplicates, labels)

    def report(self, done: BatchResult) -> None:
        """Count one committed batch of runs."""
        with self._lock:
            self.lost_leases += done.lost
            for run, ended in done.settlements:
                version = ended.handler_version or ""
                if ended.due_at is not None:
                    _count(self.retries, (run.source, ended.error_code or "", version))
                    continue
                _count(self.runs, (run.source, ended.state, "yes" if run.number else "no"))
                if ended.state == "dead":
                    _count(self.dead, (run.source, ended.error_code or "", version))
                # A replay may come a year later: its age says nothing about this inbox.
                if ended.processed_at is not None and run.number == 0:
                    self._took(run.source, max(ended.processed_at - run.received_at, 0))
            for one in done.decided:
                source = "" if one.run is None else one.run.source
                _count(self.decisions, (source, one.key[0], one.step.verdict, one.step.rule))
            for run in done.changed:
                _count(self.changed, run.source)

    def saw(self, depth: Sequence[Depth], now: int | None) -> None:
        """Note the backlog at `now`; None: nobody could look."""
        self.depth, self.looked_at = depth, now

    def _took(self, source: str, took_ms: int) -> None:
        found = self.latency.get(source)
        if found is None:
            found = self.latency[source] = Histogram(LATENCY_MS)
        found.note(took_ms)


def _count(counts: dict[K, int], key: K) -> None:
    counts[key] = counts.get(key, 0) + 1
