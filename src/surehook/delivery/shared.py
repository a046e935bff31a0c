"""One piece of work for all who ask for it while it is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar, cast

T = TypeVar("T")


class Shared(Generic[T]):
    """Those who call at the same time share one doing of `work`, if it began after they called, and its failure: were each to
    try anew, the last of fifty would hear after fifty times what a ledger that stands still is waited for."""

    def __init__(self, work: Callable[[], Awaitable[T]]) -> None:
        self._work = work
        self._lock = asyncio.Lock()
        self._begun = self._ended = 0
        self._found = cast(T, None)
        self._failed: Exception | None = None  # instead

    async def __call__(self) -> T:
        wanted = self._begun + 1
        async with self._lock:
            if self._ended < wanted:
                self._begun += 1
                try:
                    self._found, self._failed = await self._work(), None
                except Exception as error:  # where it was only cancelled, the next who waits does it anew
                    self._failed, self._ended = error, self._begun
                    raise
                self._ended = self._begun
            elif self._failed is not None:
                raise self._failed.with_traceback(None)  # else it gathers the frames of all
            return self._found
