"""The bounds the delivery engine runs within. Every one has its unit in its name or its comment."""

from __future__ import annotations

from msgspec import Struct

from surehook.config import Settings
from surehook.core.model import FIRST, RETRY, Lane

# Values that a user can set are those of the list of settings where nothing is given.
_GIVEN = Settings()
# Beats where other nodes wait for them: many within a lease, so that a dead node's work goes on within 16 s.
BEAT_SHARED_S = 0.3
DAY_S = 86_400.0


class EngineSettings(Struct, frozen=True):
    lanes: tuple[Lane, ...] = (FIRST, RETRY)  # which lanes this node delivers; none: it only takes events in
    accepts: bool = True  # whether events come in here, and with them memory for what is born leased
    slots_first: int = _GIVEN.slots_first  # requests in flight in the first lane
    slots_retry: int = _GIVEN.slots_retry  # … in the retry lane
    endpoint_slots: int = _GIVEN.endpoint_slots  # … to one endpoint, both lanes together
    # Unfinished deliveries kept in memory; beyond it the ledger keeps them.
    memory_deliveries: int = _GIVEN.memory_deliveries
    memory_bytes: int = _GIVEN.memory_mb << 20  # … and the bytes of their bodies
    endpoint_share: int = 1_000  # deliveries an endpoint may keep in memory however full it is
    waiting_events: int = _GIVEN.waiting_events  # events waiting for their commit; beyond it 503
    waiting_bytes: int = 64 << 20  # … and their bytes: as much memory as what is being delivered may have
    # … and the deliveries of one tenant: two seconds of writing; beyond it 429.
    waiting_deliveries: int = 100_000
    # Events in one transaction, a quarter where there are several tenants: the pause of those behind.
    accept_rows: int = 512
    accept_cost: int = 2_000  # … and its rows and KiB of bodies, about 10 µs each: 20 ms for those behind
    # … an event that costs more goes through a second writer: 2 to 3 ms for those behind.
    large_cost: int = 256
    large_part: int = 8  # … and beside others who publish, one part of the time in so many is theirs, or less
    turn_cost: int = 64  # … of which one tenant fills so much at a time: there is room for thirty
    slice_rows: int = 128  # rows prepared or handed over between two turns of the event loop: about 0.6 ms
    record_rows: int = _GIVEN.record_rows  # results in one transaction
    # Results gather this long: what a crash may send again.
    record_window_s: float = _GIVEN.record_window_ms / 1000
    record_backlog: int = 20_000  # unrecorded results beyond which nothing new is sent
    claim_rows: int = 500  # deliveries in one claim
    claim_ahead_s: float = 0.5  # claimed this long before they are due, then timed in memory
    poll_s: float = 1.0  # claims look at least this often
    look_s: float = 10.0  # parked groups, what is past its age and forgotten leases are looked at this often
    count_s: float = 1.0  # what waits where is counted this often (and less often where counting takes long)
    beat_s: float = 1.0  # heartbeat
    lease_s: float = 15.0  # a beat's worth of lease, and the silence after which a node is dead
    silent_s: float = 5.0  # without a committed beat for so long: not ready
    lease_left_s: float = 5.0  # the least that must be left of the lease to begin a request
    beat_gap_s: float = 3.0  # a longer pause between own beats restarts every count
    grace_s: float = float(_GIVEN.grace_s)  # shutdown: in-flight requests may finish this long
    retention_events_s: float = _GIVEN.retention_days * DAY_S
    retention_bodies_s: float = _GIVEN.body_retention_days * DAY_S
    prune_s: float = 60.0  # between rounds of retention
    prune_rows: int = 2_000  # rows removed in one transaction

    @classmethod
    def of(cls, settings: Settings) -> EngineSettings:
        """The engine of a process with these settings."""
        lanes: tuple[Lane, ...] = (FIRST, RETRY)
        if settings.role in ("api", "console"):
            lanes = ()
        elif settings.lane != "both":
            lanes = (FIRST,) if settings.lane == "first" else (RETRY,)
        return cls(
            lanes=lanes,
            accepts=settings.role in ("all", "api"),
            beat_s=cls().beat_s if settings.is_sqlite else BEAT_SHARED_S,
            slots_first=settings.slots_first,
            slots_retry=settings.slots_retry,
            endpoint_slots=settings.endpoint_slots,
            memory_deliveries=settings.memory_deliveries,
            memory_bytes=settings.memory_mb << 20,
            waiting_events=settings.waiting_events,
            record_rows=settings.record_rows,
            record_window_s=settings.record_window_ms / 1000,
            grace_s=float(settings.grace_s),
            retention_events_s=settings.retention_days * DAY_S,
            retention_bodies_s=settings.body_retention_days * DAY_S,
        )
