"""The queue for callers that block: a thread with an event loop owns the connection, and they wait for its answer."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import TypeVar

from surehook.core.effects import Script
from surehook.inbox.group_commit import StoreResult
from surehook.inbox.queue.mover import Mover, Store
from surehook.inbox.queue.port import CONFIRM_S, CONNECT_S
from surehook.inbox.queue.publisher import Publisher
from surehook.ports.inbox import StoredRequest

T = TypeVar("T")

WAIT_S = CONNECT_S + 2 * CONFIRM_S  # for those handed over before, and one's own
CLOSE_S = 5.0


class BlockingPublisher:
    """`Publisher` for threads. Its own thread begins with the first request, so that it is there after a fork."""

    def __init__(self, make: Callable[[], Publisher]) -> None:
        self._make = make
        self._beginning = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self._publisher: Publisher

    def confirmed(self, request: StoredRequest) -> bool:
        """Put a request into the queue; True: the broker has it for sure. Raises Overloaded."""
        self._begin()
        answer = asyncio.run_coroutine_threadsafe(self._publisher.confirmed(request), self._loop)
        try:
            return answer.result(WAIT_S)
        except concurrent.futures.TimeoutError:
            answer.cancel()
            return False

    def _begin(self) -> None:
        with self._beginning:
            if self._thread is None or not self._thread.is_alive():
                self._loop, self._publisher = asyncio.new_event_loop(), self._make()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="surehook-inbox-queue", daemon=True
                )
                self._thread.start()

    def close(self) -> None:
        with self._beginning:
            thread, self._thread = self._thread, None
        if thread is None or not thread.is_alive():
            return
        with suppress(concurrent.futures.TimeoutError):  # a broker that hangs keeps nobody from ending
            asyncio.run_coroutine_threadsafe(self._publisher.close(), self._loop).result(CLOSE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        thread.join(CLOSE_S)
        if not thread.is_alive():
            self._loop.close()


class BlockingMover:
    """A mover as a worker of threads: run in one, stopped from another. The thread that runs it stores; the mover's loop is in
    another one, which goes on answering the broker during a commit (and Django does not allow both in one).

    make   a mover that stores by this
    store  what it hands over, blocking
    """

    def __init__(
        self, make: Callable[[Store], Mover], store: Callable[[Sequence[StoredRequest]], list[StoreResult]]
    ) -> None:
        self._make, self._store = make, store
        self._jobs: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._changing = threading.Lock()
        self._is_stopped = False
        self._stop: Callable[[], object] = lambda: None

    def stop(self) -> None:
        with self._changing:
            self._is_stopped = True
            self._stop()

    def until_stopped(self) -> Script[None]:
        yield self._beside(lambda mover: mover.run())

    def until_empty(self) -> int:
        """Move as `Mover.until_empty` does."""
        return self._beside(lambda mover: mover.until_empty())

    def _beside(self, what: Callable[[Mover], Coroutine[object, None, T]]) -> T:
        done = concurrent.futures.Future[T]()

        def loop() -> None:
            try:
                done.set_result(asyncio.run(self._moved(what)))
            except BaseException as error:
                done.set_exception(error)
            finally:
                self._jobs.put(None)

        threading.Thread(target=loop, name="surehook-inbox-queue", daemon=True).start()
        while (job := self._jobs.get()) is not None:
            job()
        return done.result()

    async def _moved(self, what: Callable[[Mover], Coroutine[object, None, T]]) -> T:
        mover, loop = self._make(self._stored), asyncio.get_running_loop()
        with self._changing:
            if self._is_stopped:
                mover.stop()
            self._stop = lambda: loop.call_soon_threadsafe(mover.stop)
        try:
            return await what(mover)
        finally:
            with self._changing:
                self._stop = lambda: None

    async def _stored(self, requests: Sequence[StoredRequest]) -> list[StoreResult]:
        """Have the other thread store them."""
        outcomes = concurrent.futures.Future[list[StoreResult]]()

        def job() -> None:
            try:
                outcomes.set_result(self._store(requests))
            except Exception as error:
                outcomes.set_exception(error)

        self._jobs.put(job)
        return await asyncio.wrap_future(outcomes)
