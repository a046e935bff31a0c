"""The workers of an inbox, whatever they run in: who has taken too long with a handler, and who takes their place.

Nobody can stop a thread, nor a coroutine that goes on although it was cancelled. Such a worker is left behind: its transaction is
ended under its hands, another one takes its place, and it ends when the handler comes back. So that a handler that never does
cannot fill the process, others take the place of workers up to a bound; beyond it the process has to be started anew.

One that ends by an error is told, with that, and another one begins in its place. What it had in hand was
counted when it was claimed, and is due again when its lease lapses: it may be the reason.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from surehook.inbox.calls import Call, Calls
from surehook.inbox.ends import HandlerTimeout
from surehook.inbox.seldom import Seldom
from surehook.inbox.work import InHand, Left

log = logging.getLogger("surehook.inbox")

LOOK_S = 0.25  # between two looks at what handlers are at
STUCK_MOST = 32  # workers that hang in handlers: a thread has eight megabytes of address space
BEGIN_S = (
    5.0  # between two looks that replace who has ended: one that ends at once must not keep the process busy
)
RELEASE_S = 2.0  # for giving back, at the end, what was not done


class Processing(Protocol):
    """A worker that has handlers called."""

    in_hand: InHand
    is_given_up: bool


class Hand(Protocol):
    """A worker and what it runs in. `processing` None: it has no handlers called."""

    @property
    def caller(self) -> int:
        """As `calls.this` has it."""
        ...

    @property
    def is_done(self) -> bool: ...

    @property
    def error(self) -> BaseException | None:
        """What ended it, if it did not end by itself."""
        ...

    @property
    def processing(self) -> Processing | None: ...


H = TypeVar("H", bound=Hand)


class Crew(Generic[H]):
    """Those at work, and those left behind.

    begin    a worker in the place of one that left this
    again    another one of the same work, in the place of one that ended
    cut      ends the transaction of who is at it, under its hands; whether that was possible
    grace_s  from the end of a handler's time until it is given up
    """

    def __init__(
        self,
        begin: Callable[[Left], object],
        again: Callable[[H], object],
        cut: Callable[[int], bool],
        calls: Calls,
        grace_s: float,
    ) -> None:
        self._begin, self._again, self._cut, self.calls, self._grace_s = begin, again, cut, calls, grace_s
        self._may_begin = Seldom(calls.boot, BEGIN_S)
        self.hands: list[H] = []
        self.behind: list[H] = []  # and hanging still
        self.changing = threading.Lock()

    @property
    def is_stuck(self) -> bool:
        """Whether so many handlers hang that no more workers begin."""
        return len(self.behind) >= STUCK_MOST

    def look(self) -> None:
        """Give up the handlers whose time is over, and replace who has ended."""
        with self.changing:
            self.behind = [hand for hand in self.behind if not hand.is_done]
            now = self.calls.boot() - self._grace_s
            for hand in list(self.hands):
                call = self.calls.of(hand.caller)
                if call is not None and call.until <= now and hand.processing is not None:
                    self._replace(hand, hand.processing, call)
            ended = [hand for hand in self.hands if hand.is_done and hand.error is not None]
            if ended and self._may_begin.may("again"):
                for hand in ended:
                    self._again(hand)
                    self.hands.remove(hand)
                    log.error("a worker has ended, and another one begins", exc_info=hand.error)

    def _replace(self, hand: H, worker: Processing, call: Call) -> None:
        if not self.give_up(hand, worker, call):
            return
        self.hands.remove(hand)
        self.behind.append(hand)
        if self.is_stuck:
            log.error(
                "%d handlers hang in this process, and no more workers begin: start it anew, and give what handlers wait "
                "for a timeout; the last: %s", len(self.behind), call.told(self.calls.boot()),
            )  # fmt: skip
            return
        error = HandlerTimeout.of(call.handler, call.until - call.began)
        self._begin(Left(worker.in_hand, call.run, error))

    def give_up(self, hand: H, worker: Processing, call: Call) -> bool:
        """Let nothing of the call be kept, and end its transaction; False if it has come back."""
        if not self.calls.give_up(call):
            return False
        worker.is_given_up = True
        if not self._cut(hand.caller):
            log.warning("the transaction of %s cannot be ended from outside", call.handler.name)
        return True

    def leave(self) -> list[H]:
        """All that were at work: nobody takes their place any more."""
        with self.changing:
            hands, self.hands = self.hands, []
        return hands
