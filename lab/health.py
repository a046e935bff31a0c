"""Shared health in one process: the model that the real stores are held to, and what several nodes of one
process (tests, the simulated world) share. Nothing here needs a lock: no step waits.
"""

from __future__ import annotations

from collections.abc import Sequence

from surehook.core.breaker import BUCKETS
from surehook.ports.health import BUSY_MS, OVERLAP_MS, BreakerUpdate, Counted, HealthReply, View


class Entry:
    """One breaker. `generation` 0: no state was ever told."""

    __slots__ = (
        "author",
        "buckets",
        "generation",
        "opened_at",
        "probe_at",
        "probe_until",
        "prober",
        "reason",
        "state",
    )

    def __init__(self) -> None:
        self.state = "closed"
        self.reason: str | None = None
        self.opened_at = self.probe_at = self.generation = 0
        self.author = ""
        self.prober: bytes | None = None
        self.probe_until = 0
        self.buckets: dict[int, list[int]] = {}


class LocalHealth:
    """Implements ports.health.Health."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], Entry] = {}
        self._busy: dict[bytes, dict[bytes, int]] = {}  # endpoint → node → until

    async def open(self) -> None:
        """Nothing to connect to."""

    async def close(self) -> None:
        """Nothing to close: others may go on."""

    def flush(self) -> None:
        """Forget everything, as a store does that was flushed or failed over."""
        self._entries.clear()
        self._busy.clear()

    async def exchange(
        self,
        *,
        node: bytes,
        counted: Sequence[Counted],
        updates: Sequence[BreakerUpdate],
        busy: Sequence[bytes],
        since: int,
        now: int,
    ) -> HealthReply:
        for update in updates:
            self._update(update, node, now)
        views: dict[tuple[str, str], View] = {}
        for report in counted:
            place = (report.tenant, report.key)
            calls, failures = self._count(report, now)
            views[place] = self._view(place, calls, failures)
        since = min(since, now - OVERLAP_MS)
        changed = [place for place, entry in self._entries.items() if entry.generation > since]
        for place in [*changed, *((update.tenant, update.key) for update in updates)]:
            views.setdefault(place, self._view(place))
        newest = max((self._entries[place].generation for place in changed), default=since + OVERLAP_MS)
        return HealthReply(
            views=list(views.values()),
            sharers=self._share(busy, node, now),
            since=max(since, min(newest, now) - OVERLAP_MS),
        )

    async def take_probe(self, tenant: str, key: str, *, node: bytes, until: int, now: int) -> bool:
        entry = self._entries.get((tenant, key))
        if entry is None or entry.generation == 0:
            return True
        if entry.state != "open" or (now < entry.probe_at and entry.opened_at <= now + OVERLAP_MS):
            return False
        if entry.prober not in (None, node) and now < entry.probe_until <= until + OVERLAP_MS:
            return False
        entry.prober, entry.probe_until = node, until
        return True

    def _update(self, update: BreakerUpdate, node: bytes, now: int) -> None:
        entry = self._entries.setdefault((update.tenant, update.key), Entry())
        if update.hastened:
            if entry.state == "open" and update.probe_at < entry.probe_at:
                entry.probe_at = update.probe_at
                entry.generation = max(now, entry.generation + 1, update.generation)
            return
        if update.again and update.generation <= entry.generation:
            return
        news = entry.state == "closed" or entry.reason != update.reason
        if update.state == "open" and not news and (update.again or entry.prober != node):
            entry.generation = max(entry.generation, update.generation + (not update.again))
            return
        if update.state == "open" or entry.state == "open" or not entry.generation:
            entry.author = node.hex()
        entry.state, entry.reason = update.state, update.reason
        entry.opened_at, entry.probe_at = update.opened_at, update.probe_at
        entry.generation = (
            update.generation if update.again else max(now, entry.generation + 1, update.generation)
        )
        entry.prober = None
        if update.state == "closed":
            entry.buckets.clear()

    def _count(self, report: Counted, now: int) -> tuple[int, int]:
        buckets = self._entries.setdefault((report.tenant, report.key), Entry()).buckets
        for number, calls, failures in report.buckets:
            bucket = buckets.setdefault(number, [0, 0])
            bucket[0] += calls
            bucket[1] += failures
        oldest = now * BUCKETS // report.window_ms - BUCKETS
        for number in [number for number in buckets if number <= oldest]:
            del buckets[number]
        newest = (now + OVERLAP_MS) * BUCKETS // report.window_ms
        counted = [bucket for number, bucket in buckets.items() if number <= newest]
        return sum(bucket[0] for bucket in counted), sum(bucket[1] for bucket in counted)

    def _view(self, place: tuple[str, str], calls: int | None = None, failures: int | None = None) -> View:
        entry = self._entries[place]
        return View(
            tenant=place[0],
            key=place[1],
            state="open" if entry.state == "open" else "closed",
            reason=entry.reason,
            opened_at=entry.opened_at,
            probe_at=entry.probe_at,
            generation=entry.generation,
            author=entry.author,
            calls=calls,
            failures=failures,
        )

    def _share(self, busy: Sequence[bytes], node: bytes, now: int) -> dict[bytes, int]:
        sharers: dict[bytes, int] = {}
        for endpoint in busy:
            nodes = self._busy.setdefault(endpoint, {})
            nodes[node] = now + BUSY_MS
            for other in [o for o, until in nodes.items() if not now < until <= now + BUSY_MS + OVERLAP_MS]:
                del nodes[other]
            sharers[endpoint] = len(nodes)
        return sharers
