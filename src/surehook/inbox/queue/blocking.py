"""The queue for callers that block: a thread with an event loop owns the connection, and they wait for its answer.

A mover of a blocking inbox has a loop in its worker thread, which stands still while it commits: nothing else is in it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from typing import Any

from surehook.inbox.queue.front import Front
from surehook.inbox.queue.mover import Mover
from surehook.inbox.queue.port import CONFIRM_S, CONNECT_S
from surehook.ports.inbox import Request

WAIT_S = CONNECT_S + 2 * CONFIRM_S  # for those handed over before, and one's own
CLOSE_S = 5.0


class BlockingFront:
    """`Front` for threads. Its own thread begins with the first request, so that it is there after a fork."""

    def __init__(self, make: Callable[[], Front]) -> None:
        self._make = make
        self._beginning = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self._front: Front

    def confirmed(self, request: Request) -> bool:
        """Whether the broker has it for sure. Raises Overloaded."""
        self._begin()
        answer = asyncio.run_coroutine_threadsafe(self._front.confirmed(request), self._loop)
        try:
            return answer.result(WAIT_S)
        except concurrent.futures.TimeoutError:
            answer.cancel()
            return False

    def _begin(self) -> None:
        with self._beginning:
            if self._thread is None or not self._thread.is_alive():
                self._loop, self._front = asyncio.new_event_loop(), self._make()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="surehook-inbox-queue", daemon=True
                )
                self._thread.start()

    def close(self) -> None:
        with self._beginning:
            thread, self._thread = self._thread, None
        if thread is None or not thread.is_alive():
            return
        try:
            asyncio.run_coroutine_threadsafe(self._front.close(), self._loop).result(CLOSE_S)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(CLOSE_S)
            if not thread.is_alive():
                self._loop.close()


class Moving:
    """A mover as a worker of threads: `run` in one, `stop` from another."""

    def __init__(self, make: Callable[[], Mover]) -> None:
        self._make = make
        self._changing = threading.Lock()
        self._stopped = False
        self._stop: Callable[[], Any] = lambda: None

    def stop(self) -> None:
        with self._changing:
            self._stopped = True
            self._stop()

    def run(self) -> None:
        """Until stopped."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        mover, loop = self._make(), asyncio.get_running_loop()
        with self._changing:
            if self._stopped:
                return
            self._stop = lambda: loop.call_soon_threadsafe(mover.stop)
        try:
            await mover.run()
        finally:
            with self._changing:
                self._stop = lambda: None
