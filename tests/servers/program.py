"""One server's processes: start, stop, kill, freeze; the same for all kinds."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tests.servers import folder
from tests.servers.watchdog import kill_all, signal_all, working_in

START_S = 90.0  # three RabbitMQ nodes on two busy cores
STOP_S = 30.0
LOOK_S = 0.02
TAIL = 3_000  # characters of a log that an error shows


class NotStarted(Exception):
    """A server did not become ready; the text ends with its log."""


class Program:
    """A server with a folder of its own (`place`), which is the working directory of all its processes."""

    # Of this process: a killed one must be waited for, or it stays in the process table, and PostgreSQL takes its
    # old self for alive.
    _children: ClassVar[list[subprocess.Popen[bytes]]] = []

    def __init__(self, place: Path) -> None:
        self.place = folder.make(place)
        self.log = place / "server.log"
        self._first: subprocess.Popen[bytes] | None = None

    def run(
        self, command: Sequence[str], env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a tool to its end as the servers' user; an error tells what it said."""
        ended = subprocess.run(
            command, env=self._env(env), cwd=self.place, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=START_S, **_user(),
        )  # fmt: skip
        if ended.returncode:
            raise NotStarted(f"{Path(command[0]).name}: status {ended.returncode}\n{ended.stdout[-TAIL:]}")
        return ended

    def spawn(self, command: Sequence[str], env: dict[str, str] | None = None) -> None:
        """Start the server; returns at once."""
        with self.log.open("ab") as log:
            self._first = subprocess.Popen(
                command, env=self._env(env), cwd=self.place, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, **_user(),
            )  # fmt: skip
            self._children.append(self._first)

    def _env(self, env: dict[str, str] | None) -> dict[str, str]:
        """A small environment: nothing of the caller's settings reaches a server."""
        base = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.place), "LC_ALL": "C.UTF-8"}
        return {**base, "TMPDIR": str(self.place), **(env or {})}

    def until(self, ready: Callable[[], bool], seconds: float = START_S) -> None:
        """Wait until it is ready; NotStarted with the log if it ends or does not get there."""
        end = time.monotonic() + seconds
        while not ready():
            ended = not self.alive()
            if ended or time.monotonic() > end:
                said = self.log.read_text(errors="replace")[-TAIL:] if self.log.exists() else ""
                raise NotStarted(f"{self.place.name} {'ended' if ended else 'is not ready'}\n{said}")
            time.sleep(LOOK_S)

    def pids(self) -> list[int]:
        """Its processes."""
        evict()
        return working_in(self.place)

    def alive(self) -> bool:
        """Whether any of its processes runs. The one that we started is asked itself: once in thousands of looks it was
        not to be seen under /proc in the first moments of its life."""
        return (self._first is not None and self._first.poll() is None) or bool(self.pids())

    def gone(self, seconds: float = STOP_S) -> None:
        """Wait for the end of all its processes; kill what is left."""
        end = time.monotonic() + seconds
        while self.alive() and time.monotonic() < end:
            time.sleep(LOOK_S)
        kill_all(self.place)
        evict()

    def kill(self) -> int:
        """SIGKILL for all of them at once; nanoseconds of the monotonic clock just before."""
        at = time.monotonic_ns()
        self.gone(0)
        return at

    def freeze(self) -> None:
        """SIGSTOP: it holds its connections and answers nothing."""
        signal_all(self.place, signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        signal_all(self.place, signal.SIGCONT)


def evict() -> None:
    """Take note of children that have ended."""
    Program._children[:] = [child for child in Program._children if child.poll() is None]


@atexit.register
def _leave() -> None:
    """Those that outlive us, the run's shared ones, are the watchdog's; Python need not warn of them."""
    for child in Program._children:
        child.returncode = 0


def _user() -> dict[str, Any]:
    user = folder.servant()
    return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
