"""Work that a management call begins and does not wait for: bounded at once and in line, ended on shutdown.

Everything put here can be lost with the process: what it was about stands in the ledger and is found again (replay
jobs by `unfinished_replays`, deliveries of a deleted endpoint by the looks of the engine), or the policy of the day
decides with the next answer (retries that were switched off).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine

CHORES_MAX = 64  # at once; each holds one page of rows
WAITING_MAX = 10_000  # in line; each is a name and a closure, 4 MB in all

Work = Callable[[], Coroutine[object, None, None]]

log = logging.getLogger("surehook.delivery")


class Chores:
    """Background tasks of the management side, first come, first served."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._waiting: dict[tuple[str, object], Work] = {}  # in the order in which they came
        self._closed = False

    def begin(self, work: Work, *, name: str, about: object, beyond: bool = False) -> bool:
        """Do it, now or when its turn comes; what waits under the same name and about the same is not put in line twice,
        as it will look at everything when it begins. False where the line is full, unless `beyond` (for what is
        about everything, and therefore one), or the process is ending."""
        if self._closed:
            return False
        if (name, about) in self._waiting:
            return True
        if len(self._running) < CHORES_MAX:
            self._start(work, name)
            return True
        if len(self._waiting) >= WAITING_MAX and not beyond:
            return False
        self._waiting[name, about] = work
        return True

    async def idle(self) -> None:
        """Wait until everything that was begun has ended."""
        while self._running:
            await asyncio.wait(set(self._running))
            await asyncio.sleep(0)  # its end begins the next

    async def stop(self) -> None:
        """Cancel what runs and wait for its end; nothing begins after this."""
        self._closed = True
        self._waiting.clear()
        for task in sorted(self._running, key=asyncio.Task.get_name):
            task.cancel()
        await self.idle()

    def _start(self, work: Work, name: str) -> None:
        task = asyncio.get_running_loop().create_task(work(), name=name)
        self._running.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s failed", task.get_name(), exc_info=error)
        if self._waiting:
            first = next(iter(self._waiting))
            self._start(self._waiting.pop(first), first[0])
