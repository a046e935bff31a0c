"""The history of one event, for people: its arrival and its failed attempts, a part of `ports.inbox.Transaction`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from surehook.ports.inbox_reading import ReadingTransaction


class Try(Struct, frozen=True, kw_only=True):
    """An attempt that failed. `number` is its run's, `at` Unix milliseconds.

    code     as of the run, such as `handler_failed`
    handler  the one that failed, or all that were called where that is not known
    name     of the error, such as `KeyError`; None: there was none to name
    message  the error's own text, without its place
    """

    event: bytes
    at: int
    number: int
    attempt: int
    code: str
    handler: str | None
    name: str | None
    message: str | None


class Original(Struct, frozen=True, kw_only=True):
    """The request that brought an event, byte for byte. `headers` is JSON as in `ports.inbox.StoredRequest`."""

    url: str | None
    headers: str
    body: bytes


class TryTransaction(ReadingTransaction, Protocol):
    """Inside one open transaction."""

    def tries(self, event: bytes) -> Sequence[Try]:
        """The last attempts of an event that failed, oldest first: `TRIES` at most. `settle` writes them."""
        ...

    def original(self, event: bytes) -> Original | None:
        """The request that brought it; None: its retention has ended, or there is no such event."""
        ...

    def outdated(self) -> str | None:
        """The fault of tables that are older than the code, and what to do; None where they are current."""
        ...
