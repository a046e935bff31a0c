"""Handlers at work, and those that are given up.

A coroutine is cancelled when its time is over; what a thread does nobody can stop. So a call that takes too long is *given
up*: the transaction it holds is ended under its hands, another worker takes the place of the one that is stuck in it, and
when the call comes back, hours later perhaps, nothing of it is kept. Whether it came back or was given up first is decided
here, once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from msgspec import Struct

from surehook.core import ids
from surehook.inbox.event import PREFIX
from surehook.inbox.handlers import Handler
from surehook.ports.inbox import StoreError
from surehook.ports.inbox_runs import Run


class GivenUp(StoreError):
    """The handler came back after it was given up."""


class HandlerCall(Struct, eq=False, gc=False):
    """A handler at work: on this run, by this thread or task, since then and until then at the latest (seconds since boot)."""

    run: Run
    handler: Handler
    caller: int
    began: float
    until: float
    is_over: bool = False  # or given up: who sets it decides
    unawaited: str | None = None  # the name of a coroutine that it made and nobody awaited

    def describe(self, now: float) -> str:
        """Describe the call, for a log line."""
        ref = ids.text(PREFIX, self.run.event)
        return f"{self.handler.name} is at work on {ref} for {now - self.began:.0f} s"


class HandlerCalls:
    """The calls under way in this process, by thread or task. `boot` counts seconds, and `took` is told of each
    call that is over or given up, and of its seconds."""

    def __init__(
        self, boot: Callable[[], float], took: Callable[[Handler, float], None], this: Callable[[], int]
    ) -> None:
        """`this()` identifies the calling thread or task."""
        self.boot = boot
        self._this = this
        self.took = took
        self._deciding = threading.Lock()
        self._under_way: dict[int, HandlerCall] = {}

    def begin(self, run: Run, handler: Handler, now: float, until: float) -> HandlerCall:
        """Note that a call begins; `end` follows in any case."""
        caller = self._this()
        call = self._under_way[caller] = HandlerCall(run, handler, caller, now, until)
        return call

    def end(self, call: HandlerCall) -> float:
        """Note that a call is back; the instant. Raises GivenUp if it was given up, whatever it did."""
        with self._deciding:
            was_given_up, call.is_over = call.is_over, True
            if self._under_way.get(call.caller) is call:
                del self._under_way[call.caller]
        now = self.boot()
        self.took(call.handler, now - call.began)
        if was_given_up:
            raise GivenUp(f"given up, and back after {now - call.began:.0f} s")
        return now

    def mine(self) -> HandlerCall | None:
        """The call that the current thread or task is making."""
        return self._under_way.get(self._this())

    def of(self, caller: int) -> HandlerCall | None:
        """The call that this thread or task is making."""
        return self._under_way.get(caller)

    def under_way(self) -> list[str]:
        """Describe those that go on, for log lines."""
        return [call.describe(self.boot()) for call in list(self._under_way.values())]

    def give_up(self, call: HandlerCall) -> bool:
        """Let nothing of it be kept; False if it has come back."""
        with self._deciding:
            if call.is_over:
                return False
            call.is_over = True
            del self._under_way[call.caller]
        self.took(call.handler, self.boot() - call.began)  # it may never come back to say so
        return True


def this_task() -> int:
    """Identify the calling task; 0 where there is none: no thread calls handlers that must not block."""
    try:
        return id(asyncio.current_task())
    except RuntimeError:
        return 0
