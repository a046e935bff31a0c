"""Several processes of one program: a parent that serves nothing itself, starts children, and stays small.

Children are forked before anything was opened but the listening socket, which they share: a connection waits
in one queue, and whichever child is free takes it. (With a socket of its own for each, by SO_REUSEPORT, the
connections in a dead child's queue would be reset, and a busy child's queue could not be helped by the idle.)

A child that dies is started again, at once the first time and then after pauses that double up to
`PAUSE_MOST_S`; one that lived for `STEADY_S` has earned a quick start again. SIGTERM or SIGINT is passed on as
SIGTERM, and the parent waits until all have ended; a second one kills. Children notice their parent's death
by a pipe that it holds open, and stop as if told to, so that no orphan keeps the port.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from collections.abc import Callable, Iterator

from surehook.host.running import farewell

PAUSE_FIRST_S, PAUSE_MOST_S = 0.1, 10.0
STEADY_S = 30.0
STOP_EXTRA_S = 15.0  # beyond the grace time: closing connections, writing results, closing the ledger
EXIT_FAILED = 1
STOPPING = (signal.SIGTERM, signal.SIGINT)
LINE_BYTES = 65_536  # of what a child may tell at once

Say = Callable[[str], None]
Told = Callable[[dict[str, object]], None]


class Child:
    """A child's side: its number from 0, a way to tell the parent, and a sign of the parent's death."""

    def __init__(self, number: int, told: int, parent: int) -> None:
        self.number = number
        self.parent = parent  # readable, with nothing to read, once the parent is gone
        self._told = told

    def tell(self, **facts: object) -> None:
        """Say something to the parent."""
        with contextlib.suppress(OSError):  # the parent is gone, and its own pipe says so as well
            os.write(self._told, json.dumps(facts).encode() + b"\n")


class _Place:
    """One child's place in the parent, filled again after each death."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.pid = 0  # 0: nobody
        self.ear = -1
        self.started_at = 0.0
        self.start_at: float | None = None  # monotonic seconds; None: it runs, or waits for the first
        self.pause_s = 0.0
        self.heard = b""


class Children:
    """`work(child)` is run in each of `count` children and returns its exit status. `told` gets what children say,
    `say` a line for people. `run` returns the status of the whole: 0 where all ended as asked."""

    def __init__(
        self, count: int, work: Callable[[Child], int], *, grace_s: float, told: Told, say: Say
    ) -> None:
        self._work = work
        self._grace_s, self._stop_s = grace_s, grace_s + STOP_EXTRA_S
        self._told = told
        self._say = say
        self._places = [_Place(number) for number in range(count)]
        self._signals: list[int] = []
        self._stopping = False
        self._is_up = False  # the first child has said something: the others may follow
        self._status = 0
        self._life: tuple[int, int] = (-1, -1)
        self._woken: tuple[int, int] = (-1, -1)

    def stop(self) -> None:
        """Let every child end."""
        self._stopping = True
        for place in self._places:
            place.start_at = None
            self._kill(place, signal.SIGTERM)

    def run(self) -> int:
        """Run until a signal. The first child is started alone, so that a fault of all children is reported once."""
        self._life, self._woken = os.pipe(), os.pipe()
        for end in self._woken:
            os.set_blocking(end, False)
        with self._hearing_signals():
            self._places[0].start_at = time.monotonic()
            deadline: float | None = None
            while not (self._stopping and all(place.pid == 0 for place in self._places)):
                if self._signals and not self._stopping:
                    self._say(farewell(self._grace_s))
                    self.stop()
                if self._stopping and deadline is None:
                    deadline = time.monotonic() + self._stop_s
                if len(self._signals) > 1:
                    self._kill_all()
                    return 128 + self._signals[1]
                if deadline is not None and time.monotonic() >= deadline:
                    self._say("some processes did not end in time and were killed")
                    self._kill_all()
                    return EXIT_FAILED
                self._start_due()
                self._wait(deadline)
                self._reap()
        return self._status

    # -- starting ---------------------------------------------------------------------------------------

    def _start_due(self) -> None:
        now = time.monotonic()
        for place in self._places:
            if place.start_at is not None and place.start_at <= now:
                self._start(place)

    def _start(self, place: _Place) -> None:
        ear, mouth = os.pipe()
        # A signal that came between the fork and the child's own handlers would be lost in the copy of ours.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        pid = os.fork()
        if pid == 0:
            os._exit(self._be_child(place, ear, mouth))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
        os.close(mouth)
        os.set_blocking(ear, False)
        place.pid, place.ear, place.heard = pid, ear, b""
        place.started_at, place.start_at = time.monotonic(), None

    def _be_child(self, place: _Place, ear: int, mouth: int) -> int:
        """In the child: leave everything of the parent's behind, then work."""
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent passes it on
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
            for end in (ear, self._life[1], *self._woken):
                os.close(end)
            for other in self._places:
                if other.ear >= 0:
                    os.close(other.ear)
            return self._work(Child(place.number, mouth, self._life[0]))
        except BaseException:
            import traceback

            traceback.print_exc()
            return EXIT_FAILED

    # -- waiting ----------------------------------------------------------------------------------------

    def _wait(self, deadline: float | None) -> None:
        times = [place.start_at for place in self._places if place.start_at is not None]
        if deadline is not None:
            times.append(deadline)
        wait_s = max(0.0, min(times) - time.monotonic()) if times else None
        ears = [place.ear for place in self._places if place.ear >= 0]
        ready, _, _ = select.select([self._woken[0], *ears], [], [], wait_s)
        if self._woken[0] in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._woken[0], 512)
        for place in self._places:
            if place.ear in ready:
                self._hear(place)

    def _hear(self, place: _Place) -> None:
        try:
            given = os.read(place.ear, LINE_BYTES)
        except BlockingIOError:
            return
        if not given:  # it is gone, or will be
            os.close(place.ear)
            place.ear = -1
            return
        *lines, place.heard = (place.heard + given).split(b"\n")
        for line in lines:
            self._told({"process": place.number, "pid": place.pid, **json.loads(line)})
            if not self._is_up and not self._stopping:
                self._is_up = True
                for other in self._places[1:]:
                    other.start_at = time.monotonic()

    def _reap(self) -> None:
        for place in self._places:
            if place.pid == 0:
                continue
            pid, code = os.waitpid(place.pid, os.WNOHANG)
            if pid:
                self._ended(place, os.waitstatus_to_exitcode(code))

    def _ended(self, place: _Place, code: int) -> None:
        if place.ear >= 0:  # its last words
            self._hear(place)
        if place.ear >= 0:
            os.close(place.ear)
            place.ear = -1
        gone, place.pid = place.pid, 0
        if self._stopping:
            if code not in (0, -signal.SIGTERM):  # the latter: it had not begun
                self._status = EXIT_FAILED
            return
        if time.monotonic() - place.started_at >= STEADY_S:
            place.pause_s = 0.0
        how = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
        self._say(f"process {place.number} (pid {gone}) {how}; it is started again in {place.pause_s:g} s")
        place.start_at = time.monotonic() + place.pause_s
        place.pause_s = min(max(PAUSE_FIRST_S, place.pause_s * 2), PAUSE_MOST_S)

    # -- ending -----------------------------------------------------------------------------------------

    def _kill_all(self) -> None:
        for place in self._places:
            self._kill(place, signal.SIGKILL)
        for place in self._places:
            if place.pid:
                os.waitpid(place.pid, 0)

    def _kill(self, place: _Place, number: int) -> None:
        if place.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(place.pid, number)

    @contextlib.contextmanager
    def _hearing_signals(self) -> Iterator[None]:
        before = {
            number: signal.signal(number, self._on_signal)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
        }
        signal.set_wakeup_fd(self._woken[1], warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)
            for end in (*self._life, *self._woken):
                os.close(end)

    def _on_signal(self, number: int, frame: object) -> None:
        if number != signal.SIGCHLD:
            self._signals.append(number)
