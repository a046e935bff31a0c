"""A small honest HTTP server for tests: it hears one request at a time on each connection and does as told."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from msgspec.json import decode, encode


class Heard(NamedTuple):
    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return decode(self.body)


# What a request is met with: bytes to answer with, or None to close the connection without a word.
Respond = Callable[[Heard], bytes | None]


def answer(status: int, value: Any = None, **headers: str) -> bytes:
    """A complete answer with a JSON body."""
    body = b"" if value is None else encode(value)
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", "content-type: application/json"]
    lines += [f"{name.replace('_', '-')}: {text}" for name, text in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


class StandIn:
    """`url`, and every request `heard`, in order."""

    def __init__(self, respond: Respond) -> None:
        self.heard: list[Heard] = []
        self.connections = 0
        self._respond = respond
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()
        self.hang_up()

    def hang_up(self) -> None:
        """Close every connection, as a restarted server has."""
        for connection in self._open:
            with_no_error(lambda c=connection: c.shutdown(socket.SHUT_RDWR))
        self._open.clear()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            try:
                while (request := _hear(stream)) is not None:
                    self.heard.append(request)
                    reply = self._respond(request)
                    if reply is None:
                        return
                    connection.sendall(reply)
                    if b"connection: close" in reply or (
                        b"content-length" not in reply and b"chunked" not in reply
                    ):
                        return
            except OSError:
                return


def with_no_error(act: Callable[[], object]) -> None:
    with suppress(OSError):
        act()


def _hear(stream: Any) -> Heard | None:
    first = stream.readline().decode().split()
    if len(first) != 3:
        return None
    headers = {}
    while line := stream.readline().decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return Heard(first[0], first[1], headers, stream.read(int(headers.get("content-length", 0))))


@contextmanager
def stand_in(*replies: bytes | Respond | None) -> Iterator[StandIn]:
    """A server that gives these replies in turn; the last one for ever."""
    left = list(replies)

    def respond(heard: Heard) -> bytes | None:
        reply = left.pop(0) if len(left) > 1 else left[0]
        return reply(heard) if callable(reply) else reply

    server = StandIn(respond)
    try:
        yield server
    finally:
        server.close()
