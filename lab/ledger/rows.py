"""The book's own values: an unfinished delivery, a finished one, a remembered key."""

from __future__ import annotations

from msgspec import Struct

from surehook.core import receipt_state
from surehook.core.model import STANDING_REASONS, Delivery, Lane
from surehook.ports.reading import Dismissal


class Row(Struct):
    """An unfinished delivery. `holder` and `parked` are never both set; with neither it is in its lane."""

    id: bytes
    event: bytes
    endpoint: bytes
    tenant: str
    type: str
    lane: Lane
    attempt: int
    due_at: int
    born_at: int
    stood_ms: int
    spared: int
    freed: int
    overdue_at: int | None
    replay_of: bytes | None
    outcome: str | None
    unknown: bool
    holder: bytes | None
    parked: str | None
    parked_at: int  # when it was put aside; says nothing while it is not parked
    handed: int = 0  # the generation it was handed over in; 0: not, and always 0 while held or parked

    @property
    def aged_from(self) -> int:
        """The instant its age counts from."""
        return self.born_at + self.stood_ms

    def unpark(self, *, now: int) -> None:
        """Take it out of parking; the time it stood for a standing reason does not count as age."""
        if self.parked in STANDING_REASONS:
            self.stood_ms += max(0, now - self.parked_at)
        self.parked = None

    def hand_out(self, body: bytes) -> Delivery:
        """A copy for whoever asked; it shares nothing with the book."""
        return Delivery(
            id=self.id,
            event=self.event,
            endpoint=self.endpoint,
            tenant=self.tenant,
            type=self.type,
            lane=self.lane,
            attempt=self.attempt,
            due_at=self.due_at,
            born_at=self.born_at,
            body=body,
            stood_ms=self.stood_ms,
            spared=self.spared,
            freed=self.freed,
            overdue_at=self.overdue_at,
            replay_of=self.replay_of,
            outcome=self.outcome,
            unknown=self.unknown,
            parked=self.parked,
            held=self.holder is not None,
        )


def take_in(delivery: Delivery, *, node: bytes | None, now: int) -> Row:
    """The row of a delivery at its birth: parked where it says so, else held by `node` where it says so."""
    return Row(
        id=delivery.id,
        event=delivery.event,
        endpoint=delivery.endpoint,
        tenant=delivery.tenant,
        type=delivery.type,
        lane=delivery.lane,
        attempt=delivery.attempt,
        due_at=delivery.due_at,
        born_at=delivery.born_at,
        stood_ms=delivery.stood_ms,
        spared=delivery.spared,
        freed=delivery.freed,
        overdue_at=delivery.overdue_at,
        replay_of=delivery.replay_of,
        outcome=delivery.outcome,
        unknown=delivery.unknown,
        holder=node if delivery.held and delivery.parked is None else None,
        parked=delivery.parked,
        parked_at=now,
        handed=0 if delivery.held or delivery.parked is not None else delivery.handed,
    )


class Story(Struct):
    """A finished delivery. Only `replayed_by` and `dismissal` are ever written later, and `request_headers` go with the dead
    letter."""

    id: bytes
    event: bytes
    endpoint: bytes
    tenant: str
    type: str
    state: str
    reason: str | None
    lane: Lane
    outcome: str | None
    unknown: bool
    finished_at: int
    replay_of: bytes | None
    replayed_by: bytes | None = None
    dismissal: Dismissal | None = None
    request_headers: bytes | None = None

    @property
    def is_dead_letter(self) -> bool:
        return self.state == "dead" and self.replayed_by is None and self.dismissal is None


class KnownKey(Struct, frozen=True):
    """The first use of an idempotency key."""

    event: bytes
    digest: bytes
    fan_out: int
    at: int


class Receipt(Struct, frozen=True):
    """The receipt state of an event at an endpoint."""

    tenant: str
    row: receipt_state.ReceiptRow
    changed_at: int
