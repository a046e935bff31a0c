"""Signals that a worker waits for, for threads (`threading.Event`) and for tasks (`TaskEvent`), with the same methods."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Protocol


class Signal(Protocol):
    """Either kind, as scripts see it (`core/effects.py`)."""

    def set(self) -> None: ...

    def clear(self) -> None: ...

    def is_set(self) -> bool: ...

    def wait(self, timeout: float, /) -> bool | Awaitable[bool]:
        """Wait until it is set, or for so many seconds; whether it is set."""
        ...


class TaskEvent:
    """An `asyncio.Event` whose `wait` has a timeout, as that of `threading.Event` has."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.set = self._event.set
        self.clear = self._event.clear
        self.is_set = self._event.is_set

    async def wait(self, timeout: float, /) -> bool:
        try:
            async with asyncio.timeout(timeout):
                return await self._event.wait()
        except TimeoutError:
            return False
