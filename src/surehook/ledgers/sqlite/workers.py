"""Where work on a connection runs: on the calling thread, or on a thread of its own.

`Inline` never lets another task run, so a simulated loop orders everything. `Thread` takes jobs one at
a time, in the order they were asked for, and hands results to the loop that asked; a caller that is
cancelled meanwhile misses the result, not the effect. Its line holds at most `LINE_MAX` jobs.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from surehook.core.errors import LedgerUnavailable

R = TypeVar("R")
# Jobs in line: the loops of the engine have one or two each, so more than this are callers of the API
# that a slow disk keeps waiting, and they are told so.
LINE_MAX = 1_000

_Job = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


class Worker(Protocol):
    async def call(self, work: Callable[[], R]) -> R: ...

    def dismiss(self) -> None:
        """Take no more work; what is under way ends by itself."""
        ...

    def stop(self) -> None:
        """Take no more work and wait for what is under way."""
        ...


class Inline:
    async def call(self, work: Callable[[], R]) -> R:
        return work()

    def dismiss(self) -> None:
        pass

    def stop(self) -> None:
        pass


class Thread:
    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def call(self, work: Callable[[], R]) -> R:
        if self._jobs.qsize() >= LINE_MAX:
            raise LedgerUnavailable(f"{LINE_MAX} calls wait for the database already")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        self._jobs.put((loop, future, work))
        return await future

    def dismiss(self) -> None:
        self._jobs.put(None)

    def stop(self) -> None:
        self.dismiss()
        self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            loop, future, work = job
            try:
                answer, error = work(), None
            except BaseException as raised:
                answer, error = None, raised
            with suppress(RuntimeError):  # the loop that asked is closed: nobody waits
                loop.call_soon_threadsafe(_answer, future, answer, error)
            del job, future, work, answer, error  # an idle thread keeps nothing alive


def _answer(future: asyncio.Future[Any], answer: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(answer)
    else:
        future.set_exception(error)
