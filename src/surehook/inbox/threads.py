"""Workers in threads of this process: begun, watched, stopped within a stated time.

Nobody can stop a thread. One whose handler takes too long is left behind: its transaction is ended under its hands, another
thread takes its place, and it ends when the handler comes back. So that a handler that never does cannot fill the process,
threads take the place of others up to a bound; beyond it the process says that it has to be started anew.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait

from msgspec import Struct

from surehook.inbox.calls import Call, Calls
from surehook.inbox.ends import HandlerTimeout
from surehook.inbox.telling import Teller
from surehook.inbox.work import Left, Worker

log = logging.getLogger("surehook.inbox")

LOOK_S = 0.25  # between two looks at what handlers are at
STUCK_MOST = 32  # threads that hang in handlers: eight megabytes of address space each, and a connection while it can be told
RELEASE_S = 2.0  # for giving back, at the end, what was not done


class Hand(Struct, eq=False):
    """A worker, and the thread that it is."""

    worker: Worker | Teller
    thread: threading.Thread
    done: Future[None]

    @property
    def ident(self) -> int:
        return self.thread.ident or 0


class WorkerThreads:
    """The threads of an inbox.

    make    a worker, and what it begins with
    labour  what a thread does with one
    cut     ends the transaction of a thread under its hands; whether that was possible
    """

    def __init__(
        self,
        make: Callable[[Left | None], Worker],
        labour: Callable[[Worker | Teller], None],
        cut: Callable[[int], bool],
        calls: Calls,
        *,
        stop_s: float,
    ) -> None:
        self._make, self._labour, self._cut, self._calls = make, labour, cut, calls
        self._stop_s = stop_s
        self._hands: list[Hand] = []
        self._behind: list[Hand] = []  # left behind, and hanging still
        self._changing = threading.Lock()
        self._stopping = threading.Event()
        self._numbers = 0
        self._is_watched = False

    @property
    def is_stuck(self) -> bool:
        """Whether so many handlers hang that no more workers begin."""
        return len(self._behind) >= STUCK_MOST

    def start(self, workers: int, also: Sequence[Teller]) -> None:
        with self._changing:
            self._stopping.clear()
            for _ in range(workers):
                self._begin(self._make(None))
            for teller in also:
                self._begin(teller)
            if not self._is_watched:
                self._is_watched = True
                threading.Thread(target=self._watch, name="surehook-inbox-watch", daemon=True).start()

    def _begin(self, worker: Worker | Teller) -> None:
        name = f"surehook-inbox-{self._numbers}"
        self._numbers += 1
        done = Future[None]()

        def labour() -> None:
            try:
                self._labour(worker)
            finally:
                done.set_result(None)

        hand = Hand(worker, threading.Thread(target=labour, name=name, daemon=True), done)
        self._hands.append(hand)
        hand.thread.start()

    # -- while they work ----------------------------------------------------------------------------------------

    def _watch(self) -> None:
        while not self._stopping.wait(LOOK_S):
            try:
                self.look()
            except Exception:
                log.exception("handlers at work could not be looked after")
        self._is_watched = False

    def look(self) -> None:
        """Give up the handlers whose time is over."""
        with self._changing:
            self._behind = [hand for hand in self._behind if not hand.done.done()]
            now = self._calls.boot()
            for hand in list(self._hands):
                call = self._calls.of(hand.ident)
                if call is not None and call.until <= now and isinstance(hand.worker, Worker):
                    self._replace(hand, hand.worker, call)

    def _replace(self, hand: Hand, worker: Worker, call: Call) -> None:
        if not self._given_up(hand, worker, call):
            return
        self._hands.remove(hand)
        self._behind.append(hand)
        error = HandlerTimeout.of(call.handler, call.until - call.began)
        if self.is_stuck:
            log.error(
                "%d handlers hang in threads of this process, and no more workers begin: start it anew, and give what "
                "handlers wait for a timeout; the last: %s",
                len(self._behind), call.told(self._calls.boot()),
            )  # fmt: skip
            return
        self._begin(self._make(Left(worker.turn_now, call.run, error)))

    def _given_up(self, hand: Hand, worker: Worker, call: Call) -> bool:
        if not self._calls.give_up(hand.ident, call):
            return False
        worker.is_given_up = True
        if not self._cut(hand.ident):
            log.warning("the transaction of %s cannot be ended from outside", call.handler.name)
        return True

    # -- the end ------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the workers, each after the handler it is in; leave behind what is not done after `stop_s` seconds."""
        self._stopping.set()
        with self._changing:
            hands, self._hands = self._hands, []
        for hand in hands:
            hand.worker.stop()
        wait([hand.done for hand in hands], timeout=self._stop_s)
        late = [hand for hand in hands if not hand.done.done()]
        if late:
            self._leave(late)

    def _leave(self, late: list[Hand]) -> None:
        lefts = list[Left]()
        for hand in late:
            call = self._calls.of(hand.ident)
            if call is None or not isinstance(hand.worker, Worker):
                log.error("%s was left behind, waiting for its database or a sender", hand.thread.name)
                self._cut(hand.ident)
            elif self._given_up(hand, hand.worker, call):
                log.error("left behind, to be done anew: %s", call.told(self._calls.boot()))
                lefts.append(Left(hand.worker.turn_now))
        releasing = threading.Thread(target=self._release, args=(lefts,), daemon=True)
        releasing.start()
        releasing.join(RELEASE_S)

    def _release(self, lefts: list[Left]) -> None:
        for left in lefts:
            worker = self._make(left)
            worker.stop()
            self._labour(worker)
