"""The engine as management calls see it, and their duty when they have changed something.

Configuration lives in the ledger and, for the hot path, in memory. A change is written first (which raises the
version), then `changed` brings it into this process's memory, and only then is the caller answered: whatever
was answered 201 holds for the next call.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from surehook.core import ids
from surehook.delivery.caller_calls import CallerCalls
from surehook.delivery.directory import Directory
from surehook.delivery.endings import Endings
from surehook.delivery.endpoint_state import UrlBreaker
from surehook.delivery.tokens import Tokens
from surehook.delivery.watch import DeliveryCounts
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy
from surehook.ports.ledger import Ledger
from surehook.ports.reading import LedgerReading
from surehook.ports.registry import Registry
from surehook.ports.transport import Transport


class WholeLedger(Ledger, Registry, LedgerReading, Protocol):
    """The three ports of storage in one object."""


class BreakerView(Struct, frozen=True):
    """One breaker as people see it. Instants are None where it is closed; `window_s` None where it only ever opens
    for key trouble. `endpoints` are those that share it."""

    tenant: str
    url: str  # without query
    state: str
    reason: str | None
    failures: int
    calls: int
    window_s: float | None
    opened_at: int | None
    probe_at: int | None
    endpoints: tuple[bytes, ...]


class Manager(Protocol):
    """The engine, as far as management needs it."""

    @property
    def clock(self) -> Clock: ...
    @property
    def entropy(self) -> Entropy: ...
    @property
    def ledger(self) -> WholeLedger: ...
    @property
    def transport(self) -> Transport: ...
    @property
    def tokens(self) -> Tokens:
        """Sends requests, with a token where an endpoint wants one."""
        ...

    @property
    def caller_calls(self) -> CallerCalls:
        """Places for outgoing calls that a request starts."""
        ...

    @property
    def endings(self) -> Endings:
        """Ends deliveries without a call in hand, and counts them."""
        ...

    @property
    def directory(self) -> Directory:
        """The configuration in memory."""
        ...

    @property
    def watch(self) -> DeliveryCounts:
        """Counters for metrics."""
        ...

    async def current(self) -> None:
        """Make sure that the configuration in memory is the ledger's: before a refusal on memory's word."""
        ...

    async def changed(self) -> None:
        """Bring the configuration of the ledger into memory. Called after every change, before the answer."""
        ...

    def endpoint_removed(self, endpoint: bytes) -> None:
        """An endpoint was deleted, and whoever deleted it could not end its deliveries: the next look does."""
        ...

    def probe_now(self, endpoint: bytes) -> None:
        """Somebody mended something about the endpoint, or wants to know: where its breaker is open, the next probe is due
        now."""
        ...

    def close_breaker(self, breaker: UrlBreaker) -> None:
        """A person says that its receiver is well: it holds nothing back any more."""
        ...

    def wake(self) -> None:
        """Look for due work now."""
        ...


def new_id(manager: Manager, now: int) -> bytes:
    """A fresh uuid7."""
    return ids.uuid7(now, manager.entropy.bits(10))
