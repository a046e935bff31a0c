"""Deadlines of transactions: a database that says nothing, or keeps a statement waiting, is waited for so long and no longer.

Then the connection is shut under the hands of whoever waits (cutting.py), and the wait ends with an error. Where there is no
connection yet, a task is cancelled; a thread is left to the driver's own timeouts (engines.py).

A deadline costs no thread and no timer of the operating system for each transaction. One thread watches those of all threads:
it sleeps until the first, and is not woken for later ones. Tasks have a timer of their loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from surehook.host.clock import SystemClock
from surehook.host.forking import renew_in_children
from surehook.ports.inbox import StoreUnavailable

STORE_S = 10.0  # for a transaction that stores what arrives: as long as one waits for SQLite's writer

Cut = Callable[[], object]


class Silent(StoreUnavailable):
    """The database has not answered in time."""

    def __init__(self, within_s: float) -> None:
        super().__init__(f"the database has not answered within {within_s:g} s")


class TransactionDeadline:
    """The deadline of one transaction. All but `end` is called by who runs it."""

    __slots__ = ("_cut", "_ending", "_is_done", "is_over", "until", "within_s")

    def __init__(self, within_s: float, until: float) -> None:
        self.within_s, self.until = within_s, until
        self.is_over = False
        self._is_done = False
        self._cut: Cut | None = None
        # A connection that went back to its pool meanwhile may be somebody else's.
        self._ending = threading.Lock()

    def connected(self, cut: Cut) -> None:
        """Note how the transaction is ended from outside. Raises Silent if that is due already."""
        with self._ending:
            self._cut = cut
            if self.is_over:
                raise Silent(self.within_s)

    def done(self) -> None:
        with self._ending:
            self._is_done = True

    def end(self) -> bool:
        """End the transaction, if it is under way; False if there is no connection to be shut."""
        with self._ending:
            if self._is_done:
                return True
            self.is_over = True
            if self._cut is None:
                return False
            with suppress(Exception):  # it is lost already; whoever watches goes on
                self._cut()
            return True


class ThreadDeadlines:
    """The deadlines of threads. `boot` counts seconds."""

    def __init__(self, boot: Callable[[], float]) -> None:
        self._boot = boot
        self.forked()
        renew_in_children(self)

    def forked(self) -> None:
        self._changed = threading.Condition()
        self._under_way: set[TransactionDeadline] = set()
        self._wakes_at = float("inf")
        self._thread: threading.Thread | None = None

    @contextmanager
    def within(self, seconds: float) -> Iterator[TransactionDeadline]:
        """Bound what is done within; the deadline. Raises Silent for any error by which it ended too late."""
        deadline = TransactionDeadline(seconds, self._boot() + seconds)
        self._add(deadline)
        try:
            yield deadline
        except Exception as error:
            if deadline.is_over and not isinstance(error, Silent):
                raise Silent(seconds) from error
            raise
        finally:
            deadline.done()
            with self._changed:
                self._under_way.discard(deadline)

    def _add(self, deadline: TransactionDeadline) -> None:
        with self._changed:
            self._under_way.add(deadline)
            if deadline.until < self._wakes_at:
                self._wakes_at = deadline.until
                self._changed.notify()
            if self._thread is None:
                thread = threading.Thread(target=self._watch, name="surehook-inbox-deadlines", daemon=True)
                with suppress(RuntimeError):  # no thread to be had: the next one tries again
                    thread.start()
                    self._thread = thread

    def _watch(self) -> None:
        while True:
            for deadline in self._late():
                deadline.end()

    def _late(self) -> list[TransactionDeadline]:
        """Sleep until some are over."""
        with self._changed:
            while True:
                now = self._boot()
                late = [one for one in self._under_way if one.until <= now]
                self._under_way.difference_update(late)
                self._wakes_at = min((one.until for one in self._under_way), default=float("inf"))
                if late:
                    return late
                self._changed.wait(min(self._wakes_at - now, threading.TIMEOUT_MAX))


class TaskDeadline:
    """The deadline of the calling task's transaction, within `with`."""

    __slots__ = ("_before", "_deadline", "_has_cancelled", "_task", "_timer")

    def __init__(self, seconds: float) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        self._deadline = TransactionDeadline(seconds, loop.time() + seconds)
        self._task, self._before = task, task.cancelling()
        self._has_cancelled = False
        self._timer = loop.call_at(self._deadline.until, self._ring)

    def _ring(self) -> None:
        if not self._deadline.end():
            self._has_cancelled = True
            self._task.cancel()

    def __enter__(self) -> TransactionDeadline:
        return self._deadline

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._timer.cancel()
        self._deadline.done()
        if not self._deadline.is_over or isinstance(error, Silent):
            return
        ours = self._has_cancelled and self._task.uncancel() <= self._before  # and nobody else's
        if isinstance(error, Exception) or (ours and isinstance(error, asyncio.CancelledError)):
            raise Silent(self._deadline.within_s) from error


THREADS = ThreadDeadlines(SystemClock().boot)


@contextmanager
def bounded(seconds: float, cut: Cut, *, is_async: bool) -> Iterator[None]:
    """Bound what is done within, by a thread or by a task of a loop, with a connection that `cut` shuts. Raises Silent."""
    with TaskDeadline(seconds) if is_async else THREADS.within(seconds) as deadline:
        deadline.connected(cut)
        yield
