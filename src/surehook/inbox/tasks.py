"""Workers in tasks of an event loop: the twin of `threads`.

A coroutine whose time is over is cancelled where it waits (ends.py); only one that goes on all the same is left behind.
What blocks the loop, an ordinary function that takes long, blocks this as well: no task of the process goes on until it returns,
and then that is told (held.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from msgspec import Struct

from surehook.inbox.calls import Calls
from surehook.inbox.crew import LOOK_S, RELEASE_S, Crew, Processing
from surehook.inbox.held import Held
from surehook.inbox.queue.mover import Mover
from surehook.inbox.telling import AsyncTeller
from surehook.inbox.work import AsyncWorker, Left

log = logging.getLogger("surehook.inbox")

COME_S = 5.0  # from being cancelled until a coroutine is taken for one that does not end


class Hand(Struct, eq=False):
    """A worker, and the task that it is."""

    worker: AsyncWorker | AsyncTeller | Mover
    task: asyncio.Task[None]

    @property
    def caller(self) -> int:
        return id(self.task)

    @property
    def is_done(self) -> bool:
        return self.task.done()

    @property
    def error(self) -> BaseException | None:
        return asyncio.CancelledError() if self.task.cancelled() else self.task.exception()

    @property
    def processing(self) -> Processing | None:
        return self.worker if isinstance(self.worker, AsyncWorker) else None


class WorkerTasks:
    """The tasks of an inbox.

    make  a worker, and what it begins with
    cut   ends the transaction of a task under its hands; whether that was possible
    """

    def __init__(
        self,
        make: Callable[[Left | None], AsyncWorker],
        cut: Callable[[int], bool],
        calls: Calls,
        *,
        stop_s: float,
    ) -> None:
        self._make, self._stop_s = make, stop_s
        self._held = Held(calls)
        self.crew: Crew[Hand] = Crew(
            lambda left: self._begin(make(left)), self._anew, cut, calls, grace_s=COME_S
        )
        self._watching: asyncio.Task[None] | None = None

    def start(self, workers: int, also: Sequence[AsyncTeller | Mover]) -> None:
        for _ in range(workers):
            self._begin(self._make(None))
        for other in also:
            self._begin(other)
        if self._watching is None:
            self._watching = asyncio.get_running_loop().create_task(self._watch())

    def _anew(self, ended: Hand) -> None:
        self._begin(self._make(None) if isinstance(ended.worker, AsyncWorker) else ended.worker)

    def _begin(self, worker: AsyncWorker | AsyncTeller | Mover) -> None:
        task = asyncio.get_running_loop().create_task(self._held.timed(worker.run()))
        self.crew.hands.append(Hand(worker, task))

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                self.crew.look()
            except Exception:
                log.exception("handlers at work could not be looked after")

    async def stop(self) -> None:
        """End the workers, each after the handler it is in; leave behind what is not done after `stop_s` seconds."""
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        hands = self.crew.leave()
        for hand in hands:
            hand.worker.stop()
        if hands:
            await asyncio.wait({hand.task for hand in hands}, timeout=self._stop_s)
        late = [hand for hand in hands if not hand.is_done]
        if late:
            await self._leave(late)

    async def _leave(self, late: list[Hand]) -> None:
        lefts = list[Left]()
        for hand in late:
            call, worker = self.crew.calls.of(hand.caller), hand.processing
            hand.task.cancel()
            if call is None or worker is None:
                log.error("a worker was left behind, waiting for its database or a sender")
                continue
            log.error("left behind, to be done anew: %s", call.told(self.crew.calls.boot()))
            lefts.append(Left(worker.in_hand))
        await asyncio.wait({hand.task for hand in late}, timeout=RELEASE_S)
        for hand in late:
            call, worker = self.crew.calls.of(hand.caller), hand.processing
            if call is not None and worker is not None:
                self.crew.give_up(hand, worker, call)
        releasing = asyncio.ensure_future(self._release(lefts))
        await asyncio.wait({releasing}, timeout=RELEASE_S)
        releasing.cancel()

    async def _release(self, lefts: list[Left]) -> None:
        for left in lefts:
            worker = self._make(left)
            worker.stop()
            await worker.run()
