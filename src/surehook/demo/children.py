"""The server and the receivers as processes of their own, started, watched and killed for real."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from msgspec.json import decode

from surehook.client import Client, Refused, Unreachable
from surehook.client.calls import Place, request
from surehook.client.sockets import Sockets
from surehook.core.errors import SurehookError
from surehook.demo.memory import Memory

START_S = 15.0  # a cold start on a slow machine takes two
STOP_S = 15.0  # the server's grace time and some air
LOOK_S = 0.02
LOG_LINES = 20  # shown when a child dies


class DemoError(SurehookError):
    """The demonstration cannot go on."""


class Server:
    """`surehook serve` on one SQLite file and one port, restarted as often as it is killed."""

    def __init__(
        self, folder: Path, key: str, *, command: tuple[str, ...] = ("-m", "surehook", "serve")
    ) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "server.log"
        self.database = folder / "surehook.db"
        self._folder = folder
        self._key = key
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Start and wait until it is ready; returns how many seconds that took."""
        began = time.monotonic()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # fixed command line
                [sys.executable, *self._command],
                cwd=self._folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C in the terminal is for the demonstration, which ends its children
            )
        _wait_for(self._is_ready, START_S, "the server did not become ready")
        return time.monotonic() - began

    def kill(self) -> int:
        """`kill -9`; returns the pid that is no more."""
        process = self._process
        assert process is not None
        process.kill()
        process.wait()
        return process.pid

    def stop(self) -> None:
        """End it in order, or at once where it does not listen."""
        _end(self._process)

    def _is_ready(self) -> bool:
        process = self._process
        assert process is not None
        if process.poll() is not None:
            lines = self.log.read_text(errors="replace").splitlines()[-LOG_LINES:]
            raise DemoError("the server ended while starting:\n  " + "\n  ".join(lines))
        try:
            with Client(self.url, timeout_s=2.0, patience_s=0) as client:
                client.call("GET", "/readyz")
        except (Unreachable, Refused):
            return False
        return True

    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("SUREHOOK_")}
        return inherited | {
            "SUREHOOK_DATABASE_URL": f"sqlite:///{self.database}",
            "SUREHOOK_PORT": str(self.port),
            "SUREHOOK_API_KEY": self._key,
            "SUREHOOK_ALLOW_HTTP": "1",
            "SUREHOOK_ALLOW_NETWORKS": "127.0.0.0/8",
        }


class Receivers:
    """The process of `receivers`, and its control."""

    def __init__(self) -> None:
        self.urls: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "surehook.demo.receivers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        stdout: IO[bytes] | None = self._process.stdout
        assert stdout is not None
        first = stdout.readline()
        if not first:
            raise DemoError("the receivers did not start")
        self.urls = decode(first, type=dict[str, str])

    def hand_out(self, secrets: Mapping[str, str]) -> None:
        """Give every receiver its signing secret."""
        self._ask("POST", "/secrets", dict(secrets))

    def seen(self) -> dict[str, Memory]:
        """What every receiver saw."""
        return decode(self._ask("GET", "/seen"), type=dict[str, Memory])

    def stop(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        _end(self._process)
        if self._process is not None and self._process.stdout is not None:
            self._process.stdout.close()

    def _ask(self, method: str, path: str, body: Any = None) -> bytes:
        wire = Sockets(Place.of(self.urls["control"]), timeout_s=10.0)
        try:
            return wire.exchange(request(method, path, json=body), {"host": "control"}).body
        finally:
            wire.close()


def free_port() -> int:
    """A port that is free now; the server takes it in a moment, and again after its restart."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def _end(process: subprocess.Popen[bytes] | None) -> None:
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


def _wait_for(is_so: Callable[[], bool], seconds: float, otherwise: str) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            raise DemoError(otherwise)
        time.sleep(LOOK_S)
