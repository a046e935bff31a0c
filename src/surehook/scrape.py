"""What a scrape of `/metrics` shows of an engine: the one place that knows both."""

from __future__ import annotations

from surehook.core.model import LANES
from surehook.delivery.engine import Engine
from surehook.telemetry.prometheus import Snapshot


def snapshot(engine: Engine) -> Snapshot:
    """The engine's counters as a scrape shows them."""
    now = engine.clock.now()
    counts = dict(zip(LANES, engine.lane_counts, strict=False))
    parked: dict[str, int] = {}
    for (_, reason), count in engine.parked_counts.items():
        parked[reason] = parked.get(reason, 0) + count
    return Snapshot(
        accepted=engine.accept.accepted,
        attempts=engine.watch.attempts_by_lane(),
        retries=engine.watch.retries,
        finished=engine.watch.finished_by_state,
        notices=engine.watch.notices,
        receipts=engine.watch.receipts,
        latency=engine.watch.latency,
        lateness=engine.watch.lateness,
        in_flight=engine.dispatch.in_flight(),
        slots=dict(zip(LANES, engine.lanes(), strict=True)),
        depth={
            (lane, state): getattr(count, state)
            for lane, count in counts.items()
            for state in ("ready", "in_flight", "scheduled", "parked")
        },
        oldest_due_s={
            lane: 0.0 if count.oldest_due_at is None else max(0, now - count.oldest_due_at) / 1000
            for lane, count in counts.items()
        },
        parked=parked,
        memory_deliveries=engine.dispatch.held,
        waiting_events=engine.accept.waiting,
    )
