"""One program as a process of its own: start it, wait until it is ready, kill it, end it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from surehook.core.errors import SurehookError

START_S = 15.0  # a cold start on a slow machine takes two
STOP_S = 15.0  # the server's grace time and some air
LOOK_S = 0.02
LOG_LINES = 20  # shown when a child dies


class DemoError(SurehookError):
    """The demonstration cannot go on."""


class DemoProcess:
    """`python COMMAND` in `folder`, with all its output in one file there.

    name      for people: `the server`
    first     written to its standard input, which stays open until we are gone: then it reads the end of it
    is_ready  says whether it is ready for work, given its pid
    """

    def __init__(
        self,
        name: str,
        command: tuple[str, ...],
        folder: Path,
        *,
        is_ready: Callable[[int], bool],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.first = b""
        self.log = folder / f"{name.split()[-1]}.log"
        self._command = command
        self._folder = folder
        self._environment = dict(environment or {})
        self._is_ready = is_ready
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Start it and wait until it is ready; returns how many seconds that took. Raises DemoError."""
        began = time.monotonic()
        self.begin()
        self.wait()
        return time.monotonic() - began

    def begin(self) -> None:
        """Start it, and do not wait."""
        self._let_go()
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("SUREHOOK_")}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # fixed command line
                [sys.executable, *self._command],
                cwd=self._folder,
                env=inherited | self._environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C in the terminal is for the demonstration, which ends its children
            )

    def wait(self) -> None:
        """Until it is ready. Raises DemoError."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        if self.first:
            with contextlib.suppress(BrokenPipeError):  # it has ended, and `check` says so
                process.stdin.write(self.first)
                process.stdin.flush()
        until = time.monotonic() + START_S
        while not self._is_ready(process.pid):
            self.check("while starting")
            if time.monotonic() > until:
                raise DemoError(f"{self.name} did not become ready within {START_S:.0f} s{self._said()}")
            time.sleep(LOOK_S)

    def check(self, when: str) -> None:
        """Raises DemoError where it ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            raise DemoError(f"{self.name} ended {when}{self._said()}")

    def kill(self) -> int:
        """`kill -9`; returns the pid that is no more."""
        process = self._process
        assert process is not None
        process.kill()
        process.wait()
        return process.pid

    def stop(self) -> None:
        """End it in order, or at once where it does not react."""
        end(self._process)
        self._let_go()

    def _let_go(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def _said(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        return ":\n  " + "\n  ".join(lines) if lines else ""


def end(process: subprocess.Popen[bytes] | None) -> None:
    """SIGTERM, and SIGKILL for one that takes too long."""
    if process is None or process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_S)
    except BaseException as error:  # too long, or a person who does not want to wait
        process.kill()
        process.wait()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
