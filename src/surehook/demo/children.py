"""The server, the application and the receivers as processes of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from msgspec.json import decode

from surehook.client import Client, Refused, Unreachable
from surehook.client.calls import ServerUrl, request
from surehook.client.sockets import Sockets
from surehook.demo.memory import ReceiverMemory
from surehook.demo.process import DemoError, DemoProcess, end
from surehook.host.ports import free_port


class Server(DemoProcess):
    """`surehook serve` on one SQLite file and one port, restarted as often as it is killed."""

    def __init__(
        self, folder: Path, key: str, *, command: tuple[str, ...] = ("-m", "surehook", "serve")
    ) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.database = folder / "surehook.db"
        environment = {
            "SUREHOOK_DATABASE_URL": f"sqlite:///{self.database}",
            "SUREHOOK_PORT": str(self.port),
            "SUREHOOK_API_KEY": key,
            "SUREHOOK_ALLOW_HTTP": "1",
            "SUREHOOK_ALLOW_NETWORKS": "127.0.0.0/8",
        }
        super().__init__("the server", command, folder, is_ready=self._answers, environment=environment)

    def _answers(self, pid: int) -> bool:
        try:
            with Client(self.url, timeout_s=2.0, patience_s=0) as client:
                client.call("GET", "/readyz")
        except (Unreachable, Refused):
            return False
        return True


class Application(DemoProcess):
    """The process of `application`, on one SQLite file and one port; `first` is the secret of its source."""

    def __init__(self, folder: Path, *, module: str = "surehook.demo.application") -> None:
        self.port = free_port()
        self.database = folder / "application.db"
        command = ("-m", module, str(self.database), str(self.port))
        super().__init__("the application", command, folder, is_ready=self._answers)

    def know(self, secret: str) -> None:
        """Set the secret that the server signs with."""
        self.first = secret.encode() + b"\n"

    def _answers(self, pid: int) -> bool:
        """True if this very process answers, and not another one that took its port."""
        try:
            return ask(f"http://127.0.0.1:{self.port}", "GET", "/pid", timeout_s=2.0) == str(pid).encode()
        except Unreachable:
            return False


class Receivers:
    """The process of `receivers`, and its control."""

    def __init__(self, application: int) -> None:
        self.urls: dict[str, str] = {}
        self._application = application
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "surehook.demo.receivers", str(self._application)],
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
        ask(self.urls["control"], "POST", "/secrets", dict(secrets))

    def seen(self) -> dict[str, ReceiverMemory]:
        """The memory of every receiver."""
        return decode(ask(self.urls["control"], "GET", "/seen"), type=dict[str, ReceiverMemory])

    def stop(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        end(self._process)
        if self._process is not None and self._process.stdout is not None:
            self._process.stdout.close()


def ask(url: str, method: str, path: str, body: object = None, *, timeout_s: float = 10.0) -> bytes:
    """The body of one answer. Raises Unreachable."""
    wire = Sockets(ServerUrl.of(url), timeout_s)
    try:
        return wire.exchange(request(method, path, json=body), {"host": "control"}).body
    finally:
        wire.close()
