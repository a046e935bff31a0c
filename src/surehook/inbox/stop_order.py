"""The order to stop, by SIGTERM or SIGINT, heard whatever the event loop does.

Python calls a signal's handler in its main thread, between two steps of Python. A coroutine in `os.system`, or a driver
that goes on with its call after a signal, keeps it from there for as long as it likes, and so does a wait that begins in
the very instant of the signal. What the kernel calls at once is C code of Python, which writes the signal's number to a
descriptor (`signal.set_wakeup_fd`): a thread reads it. Only code that keeps the interpreter to itself holds up that one.

An application takes the descriptor away with `loop.add_signal_handler`. So the handler, if it is called, writes too. A second
signal ends the process wherever it is heard: where C code keeps the interpreter to itself and looks for signals, as a regular
expression does, no thread can run, but the handler is called.
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
LAST_LINE_S = 1.0  # for what is written at the end


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
        self._was_called = False
        self._masks: dict[int, set[int | signal.Signals]] = {}  # of threads that fork
        self._ending = threading.Lock()
        self._heard, self._told = socket.socketpair()
        self._told.setblocking(False)
        for number in ORDERS:
            signal.signal(number, self._handle)
        signal.set_wakeup_fd(self._told.fileno(), warn_on_full_buffer=False)
        os.register_at_fork(before=self._hold, after_in_parent=self._go_on, after_in_child=self._forget)
        threading.Thread(target=self._listen, name="surehook-signals", daemon=True).start()

    # A process that a handler forks: what it is told is not for us, from its first instant on.

    def _hold(self) -> None:
        # Noted first, and kept until it was given back: a handler of another signal may raise in between.
        self._masks.setdefault(threading.get_ident(), signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        signal.pthread_sigmask(signal.SIG_BLOCK, ORDERS)

    def _go_on(self) -> None:
        if (mask := self._masks.get(threading.get_ident())) is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            del self._masks[threading.get_ident()]

    def _forget(self) -> None:
        signal.set_wakeup_fd(-1)
        for number in ORDERS:
            if signal.getsignal(number) == self._handle:
                signal.signal(number, signal.SIG_DFL)
        self._go_on()

    def _handle(self, number: int, _: object) -> None:
        if self._was_called:
            os._exit(128 + number)
        self._was_called = True
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
        self._ending.acquire()  # for good: it is said once
        try:
            last = threading.Thread(target=self._say_what_is_left, daemon=True)
            last.start()
            last.join(LAST_LINE_S)  # a pipe that nobody reads takes no line
        finally:
            os._exit(1)

    def _say_what_is_left(self) -> None:
        left = "; ".join(self._under_way()) or "something that it left behind still ran"
        sys.stderr.write(f"ended {self._within_s:g} s after the order to stop: {left}; leases lapse\n")
        sys.stderr.flush()
