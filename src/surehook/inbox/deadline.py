"""Timeouts of coroutines, where one task waits for many of them, one after the other.

A timer of its own for each (`asyncio.timeout`) costs more than a short handler does. So a task has one, which is set when there
is none and looks, when it goes off, at what is under way then: most often a later call, whose time it waits for anew.

A coroutine around each would cost as much again, in every step that is taken within. So nothing is around it: a greenlet waits
for it (`Transaction.wait`), and learns there that it was cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar

AGAIN_S = 0.1
ENDING_S = 5.0  # for who is cancelled by another

T = TypeVar("T")
Wait = Callable[[Coroutine[object, None, T]], T]


class Over(Exception):
    """The time was over, and the coroutine was cancelled for that alone."""


class Deadline:
    """The timer of one task."""

    def __init__(self, task: asyncio.Task[object]) -> None:
        self._task = task
        self._loop = task.get_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._until: float | None = None  # of the coroutine under way
        self._is_over = False
        self._before = 0  # cancellations, as the coroutine began; one may have been swallowed

    def bound(self, wait: Wait[T], coroutine: Coroutine[object, None, T], seconds: float) -> T:
        """Wait for a coroutine for so long, and cancel it then; its result. Raises Over, and what the coroutine raises."""
        cancelling, around = self._task.cancelling(), self._until  # it may be within another one
        before, self._before = self._before, cancelling
        until = self._loop.time() + seconds
        self._until = until = until if around is None else min(until, around)
        self._wake(until)
        try:
            return wait(coroutine)
        except asyncio.CancelledError:
            if self._is_over and self._task.cancelling() - 1 <= cancelling:
                raise Over from None
            raise
        finally:
            if self._is_over:
                self._is_over = False
                self._task.uncancel()
            self._until, self._before = around, before
            if around is not None:
                self._wake(around)

    def _wake(self, until: float) -> None:
        if self._timer is None or self._timer.when() > until:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(until, self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._until is None:
            return
        if self._loop.time() < self._until:
            self._wake(self._until)
        elif self._task.cancelling() > self._before and self._loop.time() < self._until + ENDING_S:
            # By somebody else, and it is about to end what it asked for: a second one would keep it from that.
            self._timer = self._loop.call_later(AGAIN_S, self._ring)
        else:
            self._is_over = True
            self._task.cancel()


class Deadlines:
    """The timers of all tasks that have asked for one and are not done."""

    def __init__(self) -> None:
        self._by_task: dict[asyncio.Task[object], Deadline] = {}

    def bound(self, wait: Wait[T], coroutine: Coroutine[object, None, T], seconds: float) -> T:
        """Have the calling task wait for a coroutine, so long. Raises Over, and what the coroutine raises."""
        task = asyncio.current_task()
        assert task is not None
        found = self._by_task.get(task)
        if found is None:
            found = self._by_task[task] = Deadline(task)
            task.add_done_callback(self._by_task.pop)
        return found.bound(wait, coroutine, seconds)
