"""Work that a management call begins and does not wait for: bounded in number, ended on shutdown.

Everything put here can be lost with the process: what it was about stands in the book and is found again
(replay jobs by `unfinished_replays`, deliveries of a deleted endpoint by the looks of the engine).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

CHORES_MAX = 64  # at once; each holds one page of rows

log = logging.getLogger("surehook.delivery")


class Chores:
    """Background tasks of the management side."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._closed = False

    def begin(self, work: Coroutine[Any, Any, None], *, name: str) -> bool:
        """Start it; False (and nothing started) where too many run already or the process is ending."""
        if self._closed or len(self._running) >= CHORES_MAX:
            work.close()
            return False
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return True

    async def idle(self) -> None:
        """Wait until everything that was begun has ended."""
        while self._running:
            await asyncio.wait(set(self._running))

    async def stop(self) -> None:
        """Cancel what runs and wait for its end; nothing begins after this."""
        self._closed = True
        for task in sorted(self._running, key=asyncio.Task.get_name):
            task.cancel()
        await self.idle()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s failed", task.get_name(), exc_info=error)
