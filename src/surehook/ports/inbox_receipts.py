"""Receipts that an inbox owes: the part of `ports.inbox.Book` that keeps them until they were told.

One row for each event whose sender asked. It holds the whole word, so what was not yet told is not a list: a later change
joins it, and whoever is told the row is told everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from surehook.core.receipt import Word


class Owed(Struct, frozen=True, kw_only=True):
    """A receipt: of which event, to whom, and what it says. Ids as text are the sender's.

    due_at    when it is to be told (again), Unix milliseconds; None: what it says was told
    attempts  how often telling it failed
    """

    event: bytes
    source: str
    event_id: str
    delivery: str
    endpoint: str
    word: Word
    due_at: int | None = None
    attempts: int = 0


class Asked(Struct, frozen=True, kw_only=True):
    """What is left of how an event came. `headers` is JSON as in `Request`, None when its retention has ended."""

    source: str
    event_id: str
    received_at: int
    headers: str | None


class ReceiptBook(Protocol):
    def owed(self, events: Sequence[bytes]) -> dict[bytes, Owed]:
        """The receipts of these events that there are, locked until the transaction ends."""
        ...

    def owe(self, new: Sequence[Owed], changed: Sequence[Owed]) -> None:
        """Write receipts that `owed` did not give, and those that it gave. A lease on them ends: they are to be told."""
        ...

    def asked(self, event: bytes) -> Asked | None:
        """How an event came; None: there is none."""
        ...

    def claim_owed(
        self, sources: Sequence[str], *, now: int, lease_ms: int, token: bytes, limit: int
    ) -> list[Owed]:
        """Lease what is due of these sources, longest due first."""
        ...

    def told(self, events: Sequence[bytes], token: bytes) -> None:
        """These were told, as far as the token still owns them: what changed meanwhile is still owed."""
        ...

    def tell_later(self, receipts: Sequence[Owed], token: bytes) -> None:
        """Give back what could not be told, with `due_at` and `attempts` as they are here."""
        ...
