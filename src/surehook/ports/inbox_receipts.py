"""Receipts that an inbox owes: the part of `ports.inbox.Transaction` that keeps them until they are sent.

One row for each event whose sender asked. It holds the whole state and no list of changes: a later change joins it, and
sending the row sends everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from surehook.core.receipt import Word


class UnsentReceipt(Struct, frozen=True, kw_only=True):
    """A receipt that is owed: its event, its sender, and its content. Ids as text are the sender's.

    due_at    when it is to be sent (again), Unix milliseconds; None: it was sent
    attempts  failed attempts to send it
    """

    event: bytes
    source: str
    event_id: str
    delivery: str
    endpoint: str
    word: Word
    due_at: int | None = None
    attempts: int = 0


class EventOrigin(Struct, frozen=True, kw_only=True):
    """An event's arrival as far as it is still kept. `headers` is JSON as in `Request`, None when its retention has ended."""

    source: str
    event_id: str
    received_at: int
    headers: str | None


class ReceiptTransaction(Protocol):
    def receipts_of(self, events: Sequence[bytes]) -> dict[bytes, UnsentReceipt]:
        """The receipts of these events that there are, locked until the transaction ends."""
        ...

    def keep_receipts(self, new: Sequence[UnsentReceipt], changed: Sequence[UnsentReceipt]) -> None:
        """Write receipts that `receipts_of` did not return, and those that it did. Ends leases on them: they are to be sent."""
        ...

    def origin(self, event: bytes) -> EventOrigin | None:
        """The event's arrival; None where there is no such event."""
        ...

    def claim_receipts(
        self, sources: Sequence[str], *, now: int, lease_ms: int, token: bytes, limit: int
    ) -> list[UnsentReceipt]:
        """Lease what is due of these sources, longest due first."""
        ...

    def receipts_sent(self, events: Sequence[bytes], token: bytes) -> None:
        """Mark these as sent where the token still owns them; what changed meanwhile is still owed."""
        ...

    def postpone_receipts(self, receipts: Sequence[UnsentReceipt], token: bytes) -> None:
        """Give back receipts that could not be sent, with `due_at` and `attempts` as given."""
        ...
