"""Receipts in the sender's ledger: one row for each event and endpoint, apart from the way of an event.

The key is (event, endpoint), not the delivery: a receiver speaks of the event, and a replay that finds it known is
answered by what was said before. `CommitUnknown` is never raised: all three calls are safe to run again, and the
ledger does so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from surehook.core.model import Notice
from surehook.core.receipt import Stage
from surehook.core.receipt_message import Said


class Heard(Struct):
    """The result of one message: ids of deliveries that this endpoint never had (or that are past their retention), and
    each stage that an event reached by it."""

    unknown: list[bytes]
    reached: list[Stage]


class Awaited(Struct, frozen=True):
    """A delivered event whose receipt had no end by `finalize_by` (Unix milliseconds)."""

    event: bytes
    endpoint: bytes
    tenant: str
    delivery: bytes
    finalize_by: int


class Receipts(Protocol):
    async def hear(self, endpoint: bytes, said: Sequence[Said], *, tenant: str, now: int) -> Heard:
        """Join receipts for events that this endpoint's deliveries brought, in one transaction. A stage is never lowered.
        An end (`receipt.ENDS`) ends the wait that `Settled.finalize_by` began."""
        ...

    async def unfinalized(self, *, now: int, limit: int) -> list[Awaited]:
        """Waits that are over, longest over first."""
        ...

    async def mark_unfinalized(
        self, awaited: Sequence[Awaited], notices: Sequence[Notice], *, now: int
    ) -> list[bytes]:
        """End these waits and keep the notices, in one transaction. Returns ids of deliveries whose wait this call ended;
        those that another process or a receipt had ended are skipped, and so are their notices."""
        ...
