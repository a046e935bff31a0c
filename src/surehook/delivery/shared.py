"""One piece of work for all who ask for it while it is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar, cast

T = TypeVar("T")


class Shared(Generic[T]):
    """Those who call at the same time share one doing of `work`, if it began after they called."""

    def __init__(self, work: Callable[[], Awaitable[T]]) -> None:
        self._work = work
        self._lock = asyncio.Lock()
        self._begun = self._ended = 0
        self._found = cast(T, None)

    async def __call__(self) -> T:
        wanted = self._begun + 1
        async with self._lock:
            if self._ended < wanted:
                self._begun += 1
                self._found = await self._work()
                self._ended = self._begun
            return self._found
