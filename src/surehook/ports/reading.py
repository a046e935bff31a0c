"""The lists and finished deliveries: read models, newest first, by keyset.

A cursor is the last id of the page before (opaque to callers: the API encodes it and does not sign it).
A page looks at a bounded number of rows; where matches are rare it may be short, with a cursor.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from surehook.core.model import Attempt, Delivery, Event
from surehook.core.receipt import Stage, Word
from surehook.ports.registry import Page


class EventFilter(Struct, frozen=True):
    tenant: str | None = None
    type: str | None = None
    subject: str | None = None
    correlation_id: str | None = None
    since: int | None = None  # accepted_at >= since
    until: int | None = None  # accepted_at < until
    idempotency_key: str | None = None  # of the tenant, which is named


class DeliveryFilter(Struct, frozen=True):
    tenant: str | None = None
    endpoint: bytes | None = None
    state: str | None = None
    type: str | None = None
    outcome: str | None = None
    since: int | None = None
    until: int | None = None
    subject: str | None = None
    event: bytes | None = None
    receipt: Stage | None = None  # the highest stage that was told
    code: str | None = None  # that the receiver gave with it
    correlation_id: str | None = None
    status: int | None = None  # of its last request; an ending without a request changes neither
    error: str | None = None


class NoticeFilter(Struct, frozen=True):
    tenant: str | None = None
    endpoint: bytes | None = None
    kind: str | None = None
    since: int | None = None


class Dismissal(Struct, frozen=True):
    """The note by which a dead letter was dismissed, and when."""

    note: str
    at: int


class DeliveryView(Struct, frozen=True):
    """A delivery as people see it, finished or not."""

    id: bytes
    event: bytes
    endpoint: bytes
    tenant: str
    type: str
    state: str
    reason: str | None
    lane: int
    attempts: int  # requests counted: entries of kind `attempt`
    outcome: str | None
    unknown: bool
    due_at: int | None
    finished_at: int | None
    replay_of: bytes | None
    replayed_by: bytes | None
    receipt: Word | None = None  # what the receiver said of the event at this endpoint
    dismissal: Dismissal | None = None  # of a dead letter that was put away
    subject: str | None = None  # of its event, as long as that is kept
    correlation_id: str | None = None
    # Of a dead letter: those of its last request, a JSON object without secrets.
    request_headers: bytes | None = None


class LaneCount(Struct, frozen=True):
    """One lane, each unfinished delivery counted once: parked; held (by a process, to be sent or on its way); ready
    (due, unheld); scheduled."""

    held: int
    ready: int
    scheduled: int
    parked: int
    oldest_due_at: int | None  # of the ready ones
    counted_at: int | None = None  # a count that took long is given again for a while; None: just now

    @property
    def rows(self) -> int:
        return self.held + self.ready + self.scheduled + self.parked


class Room(Struct, frozen=True):
    """Bytes that are free where the ledger lies, and the floor below which it takes no new work."""

    free_bytes: int
    floor_bytes: int

    @property
    def is_low(self) -> bool:
        """True where no event is accepted, and answers are recorded without headers and bodies."""
        return self.free_bytes < self.floor_bytes

    @property
    def is_short(self) -> bool:
        """True where nothing is sent either: the rest is for the results of what is under way, and for upkeep."""
        return self.free_bytes < self.floor_bytes // 2


class ReplayJob(Struct, frozen=True):
    """A request to deliver again everything that a filter matches."""

    id: bytes
    filter: bytes  # as given, JSON
    dry_run: bool
    state: str  # running, done, failed
    matched: int
    created: int
    created_at: int
    finished_at: int | None
    position: bytes | None  # where the walk goes on: the last id that it has looked at


class LedgerReading(Protocol):
    async def event(self, event: bytes) -> Event | None: ...

    async def events(self, where: EventFilter, *, limit: int, after: bytes | None) -> Page:
        """Events, newest first."""
        ...

    async def delivery(self, delivery: bytes) -> DeliveryView | None: ...

    async def deliveries(self, where: DeliveryFilter, *, limit: int, after: bytes | None) -> Page:
        """DeliveryViews, newest first by id, finished and unfinished together."""
        ...

    async def open_delivery(self, delivery: bytes) -> tuple[Delivery, bytes | None] | None:
        """An unfinished delivery with its holder (None: unheld)."""
        ...

    async def attempts(self, delivery: bytes) -> list[Attempt]:
        """The whole history of a delivery, oldest first."""
        ...

    async def dead_letters(self, where: DeliveryFilter, *, limit: int, after: bytes | None) -> Page:
        """DeliveryViews of dead deliveries that were neither replayed nor dismissed."""
        ...

    async def dead_letter_count(self) -> int:
        """Number of dead letters, counted now."""
        ...

    async def dismiss(self, delivery: bytes, *, note: str, now: int) -> bool:
        """Put a dead letter away with a note; False where it is not a dead letter (any more)."""
        ...

    async def notices(self, where: NoticeFilter, *, limit: int, after: bytes | None) -> Page: ...

    async def lane_counts(self, *, now: int) -> list[LaneCount]:
        """One count per lane, in the order of model.LANES."""
        ...

    async def parked_counts(self) -> dict[tuple[bytes, str], int]:
        """Number of rows in each (endpoint, reason) group."""
        ...

    def room(self) -> Room | None:
        """Free space for the ledger, read from the system now; None where this machine cannot tell."""
        ...

    async def size_bytes(self) -> int | None:
        """Bytes that the ledger occupies; None where it keeps nothing on a disk."""
        ...

    async def resend(
        self, originals: list[bytes], replacements: list[Delivery], *, now: int, once: bool = False
    ) -> list[bytes]:
        """Make the new deliveries (unheld, `replay_of` set) and note `replayed_by` on the finished originals;
        returns the originals for which one was made. With `once`, an original that has been replayed
        before is skipped. Originals whose event or endpoint is gone are skipped."""
        ...

    async def due_now(self, delivery: bytes, *, now: int) -> bool:
        """Make an open, unheld delivery due now and unparked where it waited for its time only; False if held."""
        ...

    async def add_replay(self, job: ReplayJob) -> None: ...

    async def advance_replay(
        self,
        before: ReplayJob,
        after: ReplayJob,
        originals: list[bytes],
        replacements: list[Delivery],
        *,
        now: int,
    ) -> ReplayJob | None:
        """Move a running job one page on, and make the page's deliveries as `resend` with `once` does, in one
        transaction. None, and nothing written, where the job does not stand where `before` says: another walker moved
        it, or this call did and its answer was lost. Else `after`, with `created` raised by what was made."""
        ...

    async def replay(self, job: bytes) -> ReplayJob | None: ...

    async def unfinished_replays(self) -> list[ReplayJob]: ...
