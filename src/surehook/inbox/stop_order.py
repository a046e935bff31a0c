"""The order to stop, by SIGTERM or SIGINT, heard whatever the event loop does.

Python calls a signal's handler in its main thread, between two steps of Python. A coroutine in `os.system`, or a driver
that goes on with its call after a signal, keeps it from there for as long as it likes, and so does a wait that begins in
the very instant of the signal. What the kernel calls at once is C code of Python, which writes the signal's number to a
descriptor (`signal.set_wakeup_fd`): a thread reads it. Only code that keeps the interpreter to itself holds up that one.

An application takes the descriptor away with `loop.add_signal_handler`. So the handler, if it is called, writes too.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

ORDERS = (signal.SIGTERM, signal.SIGINT)
# Added to the number that a handler writes: beside the descriptor's own it is no second signal.
BY_HANDLER = 0x80


class StopOrder:
    """From the order on the process has `within_s` seconds: a loop that a handler blocks, or a driver that waits for ever,
    cannot keep it longer. `under_way()` describes the handlers that are at work then. A second signal ends it at once.

    To be made in the main thread; for the rest of the process."""

    def __init__(self, within_s: float, under_way: Callable[[], list[str]]) -> None:
        self._within_s = within_s
        self._under_way = under_way
        self.stopped = threading.Event()
        # Called in a thread, once it is `stopped`.
        self.then: Callable[[], object] = lambda: None
        self._heard, self._told = socket.socketpair()
        self._told.setblocking(False)
        for number in ORDERS:
            signal.signal(number, self._handle)
        signal.set_wakeup_fd(self._told.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=self._listen, name="surehook-signals", daemon=True).start()

    def _handle(self, number: int, _: object) -> None:
        with suppress(OSError):  # full: it was heard
            self._told.send(bytes([number | BY_HANDLER]))

    def _listen(self) -> None:
        ways: set[bool] = set()  # the ways by which an order came: by each of them, one signal comes once
        while True:
            byte = self._heard.recv(1)[0]
            number, way = byte & ~BY_HANDLER, bool(byte & BY_HANDLER)
            if number not in ORDERS:
                continue
            if way in ways:
                os._exit(128 + number)
            if not ways:
                self._begin()
            ways.add(way)

    def _begin(self) -> None:
        self.stopped.set()
        self.ends()
        with suppress(RuntimeError):  # the loop is closed: it has ended by itself
            self.then()

    def ends(self) -> None:
        """End the process in time, whatever still runs."""
        last = threading.Timer(self._within_s, self._end)
        last.daemon = True
        last.start()

    def _end(self) -> None:
        try:
            left = "; ".join(self._under_way()) or "something that it left behind still ran"
            sys.stderr.write(f"ended {self._within_s:g} s after the order to stop: {left}; leases lapse\n")
            sys.stderr.flush()
        finally:
            os._exit(1)
