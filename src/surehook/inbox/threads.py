"""Workers in threads of this process: begun, watched, stopped within a stated time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait

from msgspec import Struct

from surehook.inbox.calls import Calls
from surehook.inbox.crew import LOOK_S, RELEASE_S, Crew, Processing
from surehook.inbox.queue.blocking import Moving
from surehook.inbox.telling import Teller
from surehook.inbox.work import Left, Worker

log = logging.getLogger("surehook.inbox")


class Hand(Struct, eq=False):
    """A worker, and the thread that it is."""

    worker: Worker | Teller | Moving
    thread: threading.Thread
    done: Future[None]

    @property
    def caller(self) -> int:
        return self.thread.ident or 0

    @property
    def is_done(self) -> bool:
        return self.done.done()

    @property
    def error(self) -> BaseException | None:
        return self.done.exception()

    @property
    def processing(self) -> Processing | None:
        return self.worker if isinstance(self.worker, Worker) else None


class WorkerThreads:
    """The threads of an inbox.

    make    a worker, and what it begins with
    labour  what a thread does with one
    cut     ends the transaction of a thread under its hands; whether that was possible
    """

    def __init__(
        self,
        make: Callable[[Left | None], Worker],
        labour: Callable[[Worker | Teller | Moving], None],
        cut: Callable[[int], bool],
        calls: Calls,
        *,
        stop_s: float,
    ) -> None:
        self._make, self._labour, self._cut, self._stop_s = make, labour, cut, stop_s
        self.crew: Crew[Hand] = Crew(
            lambda left: self._begin(make(left)), self._anew, cut, calls, grace_s=0.0
        )
        self._stopping: threading.Event | None = None  # of the watch that is kept
        self._numbers = 0

    def start(self, workers: int, also: Sequence[Teller | Moving]) -> None:
        with self.crew.changing:
            for _ in range(workers):
                self._begin(self._make(None))
            for other in also:
                self._begin(other)
            if self._stopping is None:
                self._stopping = threading.Event()
                watch = threading.Thread(
                    target=self._watch, args=(self._stopping,), name="surehook-inbox-watch", daemon=True
                )
                watch.start()

    def _anew(self, ended: Hand) -> None:
        self._begin(self._make(None) if isinstance(ended.worker, Worker) else ended.worker)

    def _begin(self, worker: Worker | Teller | Moving) -> None:
        name = f"surehook-inbox-{self._numbers}"
        self._numbers += 1
        done = Future[None]()

        def labour() -> None:
            try:
                self._labour(worker)
            except BaseException as error:  # the watch tells it
                done.set_exception(error)
            else:
                done.set_result(None)

        hand = Hand(worker, threading.Thread(target=labour, name=name, daemon=True), done)
        hand.thread.start()
        self.crew.hands.append(hand)

    def _watch(self, stopping: threading.Event) -> None:
        while not stopping.wait(LOOK_S):
            try:
                self.crew.look()
            except Exception:
                log.exception("handlers at work could not be looked after")

    def stop(self) -> None:
        """End the workers, each after the handler it is in; leave behind what is not done after `stop_s` seconds."""
        hands = self.crew.leave()
        if self._stopping is not None:
            self._stopping.set()
            self._stopping = None
        for hand in hands:
            hand.worker.stop()
        wait([hand.done for hand in hands], timeout=self._stop_s)
        late = [hand for hand in hands if not hand.is_done]
        if late:
            self._leave(late)

    def _leave(self, late: list[Hand]) -> None:
        lefts = list[Left]()
        for hand in late:
            call, worker = self.crew.calls.of(hand.caller), hand.processing
            if call is None or worker is None:
                log.error("%s was left behind, waiting for its database or a sender", hand.thread.name)
                self._cut(hand.caller)
            elif self.crew.give_up(hand, worker, call):
                log.error("left behind, to be done anew: %s", call.told(self.crew.calls.boot()))
                lefts.append(Left(worker.in_hand))
        releasing = threading.Thread(target=self._release, args=(lefts,), daemon=True)
        releasing.start()
        releasing.join(RELEASE_S)

    def _release(self, lefts: list[Left]) -> None:
        for left in lefts:
            worker = self._make(left)
            worker.stop()
            self._labour(worker)
