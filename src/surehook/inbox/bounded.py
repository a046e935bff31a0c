"""A store as its callers see it that wait for no silent database: each of their transactions has a deadline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from surehook.ports.inbox import Transaction

T = TypeVar("T")


class DeadlineRun(Protocol):
    """The method of a `SqlStore` that blocks, or of an `AsyncSqlStore`."""

    def run(self, work: Callable[[Transaction], object], within_s: float | None = None) -> object: ...


class Bounded:
    """Runs transactions that end after `within_s` seconds, with StoreUnavailable where they are not committed by then."""

    def __init__(self, store: DeadlineRun, within_s: float) -> None:
        self._store, self._within_s = store, within_s

    def run(self, work: Callable[[Transaction], T]) -> Any:
        """Answer as the store does: with the result, or an awaitable of it."""
        return self._store.run(work, self._within_s)
