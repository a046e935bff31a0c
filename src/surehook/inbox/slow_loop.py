"""Handlers that hold up the event loop: an ordinary function that takes long, or a coroutine with something in it that blocks.

While one does, nothing else of the process goes on: no request is answered, no other handler, and no timeout ends it. So the
steps of each worker's task are timed, from being resumed until it waits again, and a slow one's handler is named in a warning.
Its total would not do: on a loop a blocking `tx`, too, waits for the database without holding up anybody.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from surehook.inbox.calls import HandlerCalls
from surehook.inbox.handlers import Handler
from surehook.inbox.safe_log import log

HELD_S = 0.1


class SlowLoopWatch:
    """Warns of each handler that held the loop, once. One for all workers of a loop: of them one takes a step at a time.

    began  the step that is taken just now, seconds since boot; None: none is
    """

    def __init__(self, calls: HandlerCalls) -> None:
        self._calls = calls
        self._took, calls.took = calls.took, self._over
        self.began: float | None = None
        self._told: set[str] = set()

    async def timed(self, work: Coroutine[object, None, None]) -> None:
        """Await this work, and time its steps; it is all of its task."""
        await _stepwise(work, self, self._calls.boot)

    def long(self, began: float, now: float) -> None:
        """Blame a long step that is over on the call that goes on, if one does."""
        if (call := self._calls.mine()) is not None:
            self._tell(call.handler, now - max(call.began, began))

    def _over(self, handler: Handler, seconds: float) -> None:
        """Note the time of a call that is over."""
        self._took(handler, seconds)
        if seconds >= HELD_S and self.began is not None:
            self._tell(handler, min(seconds, self._calls.boot() - self.began))

    def _tell(self, handler: Handler, seconds: float) -> None:
        if seconds < HELD_S or handler.name in self._told:
            return
        self._told.add(handler.name)
        log.warning(
            "%s held the event loop for %.2f s, in which nothing else went on: %s",
            handler.name,
            seconds,
            "await what it waits for, and give what blocks to a thread (asyncio.to_thread)"
            if handler.is_async
            else "make it `async def` and await what it waits for, or define it on an Inbox, whose workers are threads",
        )


@types.coroutine
def _stepwise(
    work: Coroutine[object, None, None], held: SlowLoopWatch, boot: Callable[[], float]
) -> Generator[Any, object, None]:
    """`yield from`, with a look at the clock on either side of each step."""
    step: Callable[[Any], object] = work.send
    value: object = None
    while True:
        held.began = began = boot()
        try:
            waits_for = step(value)
        except StopIteration:
            return
        finally:
            held.began, now = None, boot()
            if now - began >= HELD_S:
                held.long(began, now)
        try:
            value, step = (yield waits_for), work.send
        except GeneratorExit:  # nobody awaits it any more; what it awaits may be over by then
            work.close()
            raise
        except BaseException as error:  # it was cancelled where it waits: that is its own to meet
            value, step = error, work.throw
