"""Private Redis servers: they keep nothing on the disk, as a cache does."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import time
from pathlib import Path
from typing import BinaryIO

from tests.servers import folder, ports
from tests.servers.installed import program
from tests.servers.program import Program

ASK_S = 10.0
Answer = bytes | int | list["Answer"] | None


class RedisError(Exception):
    """What the server refused, in its own words."""


class Redis(Program):
    """One server. Stopped and started again it is empty, unless `keeping` (an append-only file; `always`: written to the disk with
    each command)."""

    def __init__(self, place: Path, *, keeping: bool = False, always: bool = False) -> None:
        super().__init__(place)
        self.keeping = keeping
        self.always = always
        self.port = ports.reserve()

    @classmethod
    def new(cls, *, keeping: bool = False, always: bool = False) -> Redis:
        """A running server; `close()` it, or leave it to the end of the run."""
        binary = program("Redis", "redis-server")
        assert binary
        place = Path(tempfile.mkdtemp(prefix="redis-", dir=folder.run_folder()))
        folder.give(place)
        made = cls(place, keeping=keeping, always=always)
        made.start()
        return made

    @property
    def url(self) -> str:
        """Where a client finds it."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> float:
        """Start it and wait until it answers; the seconds it took."""
        began = time.monotonic()
        keep = "yes" if self.keeping else "no"
        self.spawn([
            program("Redis", "redis-server"), "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
            "--appendonly", keep, "--appendfsync", "always" if self.always else "everysec", "--dir", str(self.place), "--daemonize", "no",
        ])  # fmt: skip
        self.until(self.ready)
        return time.monotonic() - began

    def ready(self) -> bool:
        """Whether it answers."""
        try:
            return self.ask("PING") == b"PONG"
        except (OSError, RedisError):
            return False

    def stop(self, *, immediate: bool = False) -> int:
        """Stop it, in order or with SIGKILL; nanoseconds of the monotonic clock just before."""
        if immediate:
            return self.kill()
        at = time.monotonic_ns()
        for pid in self.pids():
            os.kill(pid, signal.SIGTERM)
        self.gone()
        return at

    def restart(self, *, immediate: bool = False) -> float:
        """Stop and start; seconds of the start."""
        self.stop(immediate=immediate)
        return self.start()

    def close(self) -> None:
        """End it."""
        self.kill()

    def ask(self, *words: str | bytes, seconds: float = ASK_S) -> Answer:
        """One command on a connection of its own (RESP2)."""
        parts = [word.encode() if isinstance(word, str) else word for word in words]
        said = b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as wire:
            wire.sendall(said)
            with wire.makefile("rb") as answers:
                return _read(answers)


def _read(answers: BinaryIO) -> Answer:
    line = answers.readline()
    if not line.endswith(b"\r\n"):
        raise ConnectionResetError("the server closed the connection")
    kind, rest = line[:1], line[1:-2]
    if kind == b"-":
        raise RedisError(rest.decode())
    if kind == b":":
        return int(rest)
    if kind == b"$":
        size = int(rest)
        return None if size < 0 else answers.read(size + 2)[:-2]
    if kind == b"*":
        return None if int(rest) < 0 else [_read(answers) for _ in range(int(rest))]
    return rest
