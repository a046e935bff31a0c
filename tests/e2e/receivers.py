"""Real HTTP receivers in threads, which answer as they are told and keep every request as it came."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

from tests.e2e.calling import until

HANG_S = 30.0  # a request that hangs is let go after this, or when the receiver closes


@dataclass(frozen=True)
class Seen:
    """One request: `at` on the monotonic clock, headers in their order and spelling, exact body."""

    at: float
    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """The one value of a header, None where it is absent."""
        values = [value for given, value in self.headers if given.lower() == name.lower()]
        assert len(values) <= 1, f"{name} came {len(values)} times"
        return values[0] if values else None

    def __getitem__(self, name: str) -> str:
        value = self.header(name)
        assert value is not None, f"no {name} in {self.headers}"
        return value


@dataclass(frozen=True)
class Reply:
    """An answer after `delay_s`. `drop` closes the connection instead; `hang` says nothing at all."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    delay_s: float = 0.0
    drop: bool = False
    hang: bool = False


@dataclass
class Spot:
    """One path of a receiver: what it answers (the last reply for ever) and what it saw."""

    url: str
    path: str
    replies: Sequence[Reply] | Callable[[Seen], Reply]
    seen: list[Seen] = field(default_factory=list)

    def wait(self, number: int, seconds: float = 10.0) -> list[Seen]:
        """The requests so far, once there are at least `number`."""
        until(
            lambda: len(self.seen) >= number, f"{number} requests at {self.path} ({len(self.seen)})", seconds
        )
        return list(self.seen)

    def one(self, seconds: float = 10.0) -> Seen:
        """The only request."""
        seen = self.wait(1, seconds)
        assert len(seen) == 1
        return seen[0]


class Receiver:
    """One listening server; every spot is a path of it."""

    def __init__(self) -> None:
        self.closing = threading.Event()
        self.spots: dict[str, Spot] = {}
        self._names = count(1)
        self._lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                receiver._take(self)

            do_GET = do_PUT = do_PATCH = do_HEAD = do_POST

            def log_message(self, *_: Any) -> None: ...

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 1024

            def handle_error(self, *_: Any) -> None: ...  # senders hang up: that is what is tested

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def spot(self, *replies: Reply | int, rule: Callable[[Seen], Reply] | None = None) -> Spot:
        """A new path, with its replies in order (a number is a status) or a rule; 200 where nothing is told."""
        path = f"/spot/{next(self._names)}"
        told = [Reply(status=each) if isinstance(each, int) else each for each in replies] or [Reply()]
        spot = Spot(f"http://127.0.0.1:{self.port}{path}", path, rule or told)
        self.spots[path] = spot
        return spot

    def _take(self, handler: BaseHTTPRequestHandler) -> None:
        at = time.monotonic()
        body = handler.rfile.read(int(handler.headers.get("content-length", 0)))
        seen = Seen(at, handler.command, handler.path, list(handler.headers.items()), body)
        spot = self.spots.get(handler.path.partition("?")[0])
        if spot is None:
            handler.send_error(404)
            return
        with self._lock:
            number = len(spot.seen)
            spot.seen.append(seen)
        replies = spot.replies
        reply = replies(seen) if callable(replies) else replies[min(number, len(replies) - 1)]
        if reply.hang or reply.delay_s:
            self.closing.wait(HANG_S if reply.hang else reply.delay_s)
        if reply.hang or reply.drop:
            with contextlib.suppress(OSError):
                handler.connection.shutdown(socket.SHUT_RDWR)
            handler.close_connection = True
            return
        handler.send_response(reply.status)
        for name, value in reply.headers:
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(reply.body)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(reply.body)

    def close(self) -> None:
        """Let everything go."""
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def dead_url() -> str:
    """A URL at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/nobody"
