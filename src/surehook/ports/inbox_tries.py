"""What a person asks of one event: the part of `ports.inbox.Book` that knows how it came, and how its attempts failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from surehook.ports.inbox_reading import ReadingBook


class Try(Struct, frozen=True, kw_only=True):
    """An attempt that failed. `number` is its run's, `at` Unix milliseconds.

    code     as of the run, such as `handler_failed`
    handler  the one that failed, or all that were called where that is not known
    name     of the error, such as `KeyError`; None: there was none to name
    message  what the error said, without where
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
    """How an event came, byte for byte. `headers` is JSON as in `ports.inbox.Request`."""

    url: str | None
    headers: str
    body: bytes


class TryBook(ReadingBook, Protocol):
    """Inside one open transaction."""

    def tries(self, event: bytes) -> Sequence[Try]:
        """The last attempts of an event that failed, oldest first: `TRIES` at most. `settle` writes them."""
        ...

    def original(self, event: bytes) -> Original | None:
        """How it came; None: its retention has ended, or there is no such event."""
        ...

    def outdated(self) -> str | None:
        """What is wrong with the tables where they are of an older version than the code, and what to do; None: nothing is."""
        ...
