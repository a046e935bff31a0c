"""One product server for a bench: `surehook serve` on a new ledger, a free port and loopback only."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time

import msgspec

from lab.bench import processes
from lab.bench.api import Api
from surehook.core.errors import SurehookError
from surehook.host.ports import free_port

KEY = "bench-key-0123456789"
READY_S = 60.0  # a start on a ledger of a million rows may have to look around first
LOOK_S = 0.005  # between two looks whether a starting server is ready


class NotReady(SurehookError):
    """The server did not become ready; the text ends with its log."""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of a server's start. `command` empty is this environment's `surehook serve`."""

    folder: pathlib.Path  # for the ledger and the log
    command: tuple[str, ...] = ()
    database_url: str | None = None  # else SQLite in `folder`
    settings: dict[str, str] = {}  # further SUREHOOK_… settings


def product_command() -> tuple[str, ...]:
    """The `surehook` beside this interpreter, as a user would start it."""
    return (str(pathlib.Path(sys.executable).with_name("surehook")), "serve")


class Server:
    """A server process that can be killed and started again on the same ledger and port."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.port = free_port()
        self.api = Api(self.port, KEY)
        self.log = launch.folder / "server.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.started_ns = 0

    def start(self) -> None:
        """Start it; returns at once. `started_ns` is the instant before the process existed."""
        database = self.launch.database_url or f"sqlite:///{self.launch.folder / 'surehook.db'}"
        env = {
            **processes.plain_environment(),
            "SUREHOOK_DATABASE_URL": database,
            "SUREHOOK_PORT": str(self.port),
            "SUREHOOK_API_KEY": KEY,
            "SUREHOOK_ALLOW_HTTP": "1",
            "SUREHOOK_ALLOW_NETWORKS": "127.0.0.0/8",
            **self.launch.settings,
        }
        self.started_ns = time.monotonic_ns()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.launch.command or product_command(),
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.launch.folder,
                start_new_session=True,
            )

    def wait_ready(self) -> float:
        """Seconds from the start until /readyz says yes; `READY_S` from now at most."""
        assert self.process is not None
        began = time.monotonic()
        while time.monotonic() - began < READY_S:
            if self.api.ready():  # the port is bound long before anybody answers, so this may take its time
                return (time.monotonic_ns() - self.started_ns) / 1e9
            if self.process.poll() is not None:
                raise NotReady(f"the server ended with status {self.process.returncode}\n{self._tail()}")
            time.sleep(LOOK_S)
        raise NotReady(f"the server was not ready within {READY_S:.0f} s\n{self._tail()}")

    def _tail(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self.process is not None
        return self.process.pid

    def alive(self) -> bool:
        """True while the process runs."""
        return self.process is not None and self.process.poll() is None

    def kill(self) -> int:
        """kill -9 of all its processes; the instant of the signal."""
        assert self.process is not None
        at = time.monotonic_ns()
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.api.close()
        return at

    def stop(self) -> float:
        """SIGTERM, wait, kill if need be; the seconds it took."""
        if self.process is None:
            return 0.0
        began = time.monotonic()
        self.api.close()
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(processes.STOP_S)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        return time.monotonic() - began
