"""Hooks with which a simulated world reaches into the ledger, before and after every step.

`checkpoint` is awaited on both sides of the step, so that others run, or the process dies, just before it
or after it was committed and before anybody was told. `faults` is called with `before NAME` and, for steps
that write, with `after NAME`; what it raises is what the caller sees. LedgerUnavailable belongs before
(nothing was changed), CommitUnknown on either side: before, the commit was lost; after, only its answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from lab.ledger.book import Book

Faults = Callable[[str], None]
Checkpoint = Callable[[], Awaitable[None]]


class Hooked:
    """The base of all parts of the memory ledger: the book and the two hooks."""

    def __init__(
        self,
        *,
        faults: Faults | None = None,
        checkpoint: Checkpoint | None = None,
        clock: Callable[[], int] | None = None,
    ) -> None:
        """`clock`: what the book's own clock shows, where it is to be one that several processes share."""
        self.book = Book()
        self.clock = clock
        self._faults = faults
        self._checkpoint = checkpoint

    async def _before(self, name: str) -> None:
        if self._checkpoint is not None:
            await self._checkpoint()
        if self._faults is not None:
            self._faults(f"before {name}")

    async def _after(self, name: str) -> None:
        if self._faults is not None:
            self._faults(f"after {name}")
        if self._checkpoint is not None:
            await self._checkpoint()


S = TypeVar("S", bound=Hooked)
P = ParamSpec("P")
R = TypeVar("R")


def writes(step: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], Coroutine[object, None, R]]:
    """Make a step that changes the book an async method, with the hooks on both sides of it."""

    @wraps(step)
    async def method(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        await self._before(step.__name__)
        answer = step(self, *args, **kwargs)
        await self._after(step.__name__)
        return answer

    return method


def reads(step: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], Coroutine[object, None, R]]:
    """Make a step that only looks an async method, with the hooks before it."""

    @wraps(step)
    async def method(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        await self._before(step.__name__)
        return step(self, *args, **kwargs)

    return method
