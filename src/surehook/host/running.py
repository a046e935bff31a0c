"""A server's process: the loop it runs on, and the signals that end it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Protocol

from surehook.host.signals import handle_once

# A writer thread that needs the interpreter waits at most this long for the busy loop; the default of
# 5 ms is longer than a whole commit.
SWITCH_INTERVAL_S = 0.0005


def run(work: Coroutine[object, None, int]) -> int:
    """Run a server on the loop of this process."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    return _runner()(work)


def farewell(grace_s: float) -> str:
    """The line shown at once on a signal: the wait would look like a program that hangs."""
    return (
        f"ending: nothing new is begun, and requests under way may finish within {grace_s:g} s; "
        "a second Ctrl-C or SIGTERM ends at once"
    )


class Stoppable(Protocol):
    """A server that can be told to stop."""

    def stop(self) -> object: ...


class Ending:
    """A server to be stopped by a signal, as soon as there is one. `told` is called at once."""

    def __init__(self, told: Callable[[], None] = lambda: None) -> None:
        self._server: Stoppable | None = None
        self._begun = False
        self._told = told

    def begin(self) -> None:
        """Stop in order, now or once there is something to stop."""
        self._begun = True
        if self._server is not None:
            self._server.stop()
        self._told()

    def of(self, server: Stoppable) -> None:
        """Set the server that is to be stopped."""
        self._server = server
        if self._begun:
            server.stop()


@contextlib.contextmanager
def ending(parent: int | None, told: Callable[[], None] = lambda: None) -> Iterator[Ending]:
    """The first SIGTERM or SIGINT stops in order, and so does the end of the `parent`. A second one ends the process at
    once: one of the same kind whatever the loop does, one of the other kind as soon as it comes round."""
    stop = Ending(told)
    loop = asyncio.get_running_loop()
    seen: list[int] = []

    def on_signal(number: int) -> None:
        if seen:
            os._exit(128 + number)
        seen.append(number)
        stop.begin()

    def on_orphaned() -> None:
        assert parent is not None
        loop.remove_reader(parent)
        stop.begin()

    numbers = (signal.SIGTERM,) if parent is not None else (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, on_signal, number)
        handle_once(number)
    if parent is not None:
        loop.add_reader(parent, on_orphaned)
    try:
        yield stop
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
        if parent is not None:
            loop.remove_reader(parent)


def _runner() -> Callable[[Any], int]:
    """uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run
