"""Workers in tasks of an event loop: the twin of `threads`.

A coroutine whose time is over is cancelled where it waits (ends.py). One that goes on all the same is left behind as a thread is.
What blocks the loop, an ordinary function that takes long, blocks this as well: no task of the process goes on until it returns.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from msgspec import Struct

from surehook.inbox.calls import Call, Calls
from surehook.inbox.ends import HandlerTimeout
from surehook.inbox.telling import AsyncTeller
from surehook.inbox.threads import LOOK_S, RELEASE_S, STUCK_MOST
from surehook.inbox.work import AsyncWorker, Left

log = logging.getLogger("surehook.inbox")

COME_S = 5.0  # from being cancelled until a coroutine is taken for one that does not end


class Hand(Struct, eq=False):
    """A worker, and the task that it is."""

    worker: AsyncWorker | AsyncTeller
    task: asyncio.Task[None]


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
        self._make, self._cut, self._calls = make, cut, calls
        self._stop_s = stop_s
        self._hands: list[Hand] = []
        self._behind: list[Hand] = []  # left behind, and going on still
        self._watching: asyncio.Task[None] | None = None

    @property
    def is_stuck(self) -> bool:
        """Whether so many handlers hang that no more workers begin."""
        return len(self._behind) >= STUCK_MOST

    def start(self, workers: int, also: Sequence[AsyncTeller]) -> None:
        for _ in range(workers):
            self._begin(self._make(None))
        for teller in also:
            self._begin(teller)
        if self._watching is None:
            self._watching = asyncio.get_running_loop().create_task(self._watch())

    def _begin(self, worker: AsyncWorker | AsyncTeller) -> None:
        self._hands.append(Hand(worker, asyncio.get_running_loop().create_task(worker.run())))

    # -- while they work ----------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                self.look()
            except Exception:
                log.exception("handlers at work could not be looked after")

    def look(self) -> None:
        """Give up the handlers that were cancelled and go on."""
        self._behind = [hand for hand in self._behind if not hand.task.done()]
        now = self._calls.boot()
        for hand in list(self._hands):
            call = self._calls.of(id(hand.task))
            if call is not None and call.until + COME_S <= now and isinstance(hand.worker, AsyncWorker):
                self._replace(hand, hand.worker, call)

    def _replace(self, hand: Hand, worker: AsyncWorker, call: Call) -> None:
        if not self._given_up(hand, worker, call):
            return
        self._hands.remove(hand)
        self._behind.append(hand)
        error = HandlerTimeout.of(call.handler, call.until - call.began)
        if self.is_stuck:
            log.error(
                "%d handlers go on although they were cancelled, and no more workers begin: start this process anew; "
                "the last: %s", len(self._behind), call.told(self._calls.boot()),
            )  # fmt: skip
            return
        self._begin(self._make(Left(worker.turn_now, call.run, error)))

    def _given_up(self, hand: Hand, worker: AsyncWorker, call: Call) -> bool:
        if not self._calls.give_up(id(hand.task), call):
            return False
        worker.is_given_up = True
        if not self._cut(id(hand.task)):
            log.warning("the transaction of %s cannot be ended from outside", call.handler.name)
        return True

    # -- the end ------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """End the workers, each after the handler it is in; leave behind what is not done after `stop_s` seconds."""
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        hands, self._hands = self._hands, []
        for hand in hands:
            hand.worker.stop()
        if hands:
            await asyncio.wait({hand.task for hand in hands}, timeout=self._stop_s)
        late = [hand for hand in hands if not hand.task.done()]
        if late:
            await self._leave(late)

    async def _leave(self, late: list[Hand]) -> None:
        lefts = list[Left]()
        for hand in late:
            call = self._calls.of(id(hand.task))
            hand.task.cancel()
            if call is None or not isinstance(hand.worker, AsyncWorker):
                log.error("a worker was left behind, waiting for its database or a sender")
                continue
            log.error("left behind, to be done anew: %s", call.told(self._calls.boot()))
            lefts.append(Left(hand.worker.turn_now))
        await asyncio.wait({hand.task for hand in late}, timeout=RELEASE_S)
        for hand in late:
            call = self._calls.of(id(hand.task))
            if call is not None and isinstance(hand.worker, AsyncWorker):
                self._given_up(hand, hand.worker, call)
        releasing = asyncio.ensure_future(self._release(lefts))
        await asyncio.wait({releasing}, timeout=RELEASE_S)
        releasing.cancel()

    async def _release(self, lefts: list[Left]) -> None:
        for left in lefts:
            worker = self._make(left)
            worker.stop()
            await worker.run()
