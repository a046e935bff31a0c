"""The snapshot of a process for `/metrics`: the one place that knows engine, door and machine."""

from __future__ import annotations

import platform
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping

from surehook import __version__
from surehook.api.traffic import Traffic
from surehook.core.errors import LedgerError
from surehook.core.model import LANES
from surehook.delivery.engine import Engine
from surehook.host import vitals
from surehook.http_server.connections import Connections
from surehook.outbox.relay import Relay
from surehook.telemetry.prometheus import MetricsSnapshot
from surehook.telemetry.pulse import Pulse

SLICE = 5_000  # endpoints looked at between two turns of the loop: about a millisecond


async def snapshot(
    engine: Engine,
    traffic: Traffic,
    callers: Connections,
    pulse: Pulse,
    *,
    role: str,
    ledger: str,
    relay: Relay | None = None,
) -> MetricsSnapshot:
    """Counters as they are, and states as of now."""
    endpoints = await _endpoints(engine)
    size = await _asked(engine.ledger.size_bytes)
    dead_letters = await _asked(engine.ledger.dead_letter_count)
    room = engine.ledger.room()
    now = engine.clock.now()
    counts = dict(zip(LANES, engine.looks.lane_counts, strict=False))
    parked: dict[str, int] = {}
    for (_, reason), count in engine.looks.parked_counts.items():
        parked[reason] = parked.get(reason, 0) + count
    return MetricsSnapshot(
        accepted=engine.accept.accepted,
        attempts=engine.watch.attempts_by_lane(),
        retries=engine.watch.retries,
        finished=engine.watch.finished_by_state,
        notices=engine.watch.notices,
        receipts=engine.watch.receipts,
        calls=engine.caller_calls.under_way,
        calls_begun=engine.caller_calls.begun,
        calls_refused=engine.caller_calls.refused,
        latency=engine.watch.latency,
        lateness=engine.watch.lateness,
        in_flight=engine.dispatch.in_flight(),
        slots=dict(zip(LANES, engine.lanes(), strict=True)),
        depth={
            (lane, state): getattr(count, state)
            for lane, count in counts.items()
            for state in ("ready", "held", "scheduled", "parked")
        },
        oldest_due_s={
            lane: 0.0 if count.oldest_due_at is None else max(0, now - count.oldest_due_at) / 1000
            for lane, count in counts.items()
        },
        unserved={lane: int(lane in engine.looks.unserved.lanes) for lane in counts},
        parked=parked,
        memory_deliveries=engine.dispatch.memory.held,
        waiting_events=engine.accept.waiting,
        requests=traffic.requests,
        request_times=traffic.times,
        connections=(callers.open, callers.bounds.connections),
        body_bytes=(callers.budget.used, callers.budget.limit),
        refused=callers.refused,
        breakers=Counter(breaker.state for breaker in engine.directory.breakers.unclosed),
        endpoints=endpoints,
        dead_letters=dead_letters,
        ledger_refused=engine.outage.refused,
        ledger_bytes=size,
        ledger_free_bytes=None if room is None else room.free_bytes,
        ledger_floor_bytes=None if room is None else room.floor_bytes,
        descriptors=vitals.descriptors(),
        resident_bytes=vitals.resident_bytes(),
        loop_lateness=pulse.lateness,
        build={
            "version": __version__,
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "ledger": ledger,
            "role": role,
        },
        upkeep_late_s=engine.upkeep.late_s(),
        outbox=None if relay is None else relay.figures(now),
    )


async def _endpoints(engine: Engine) -> Mapping[str, int]:
    """Endpoints by status, counted in slices: there may be a hundred thousand."""
    routes = list(engine.directory.routes.values())
    found: Counter[str] = Counter()
    for start in range(0, len(routes), SLICE):
        found.update(route.endpoint.status for route in routes[start : start + SLICE])
        await engine.clock.sleep(0)
    return found


async def _asked(count: Callable[[], Awaitable[int | None]]) -> int | None:
    try:
        return await count()
    except LedgerError:
        return None  # the ledger is away: the scrape goes on without this value
