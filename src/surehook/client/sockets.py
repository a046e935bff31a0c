"""Requests over blocking sockets: a small stack of idle connections, one request at a time on each."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections import deque
from collections.abc import Mapping

from surehook.client.calls import ApiCall, ServerUrl
from surehook.client.causes import cause_of
from surehook.client.errors import Unreachable
from surehook.client.http1 import HttpAnswer, IncomingAnswer, NotHttp, render

IDLE_MAX = 16  # connections kept for the next request; more are closed after use
READ_BYTES = 64 * 1024


class Sockets:
    """The connections of one client. Threads may call `exchange` at the same time."""

    def __init__(self, server: ServerUrl, timeout_s: float) -> None:
        self._server = server
        self._timeout_s = timeout_s
        self._idle: deque[socket.socket] = deque()  # append and pop are atomic

    def exchange(self, call: ApiCall, headers: Mapping[str, str]) -> HttpAnswer:
        """One request, one answer. Raises Unreachable."""
        data = render(call.method, self._server.prefix + call.path, headers, call.body)
        deadline = time.monotonic() + self._timeout_s
        while True:
            connection, is_fresh = self._connect(deadline)
            reader = IncomingAnswer()
            try:
                answer = _converse(connection, data, reader, deadline)
            except (OSError, NotHttp) as error:
                connection.close()
                # A kept connection that the server closed while idle says nothing about the server.
                is_stale = not is_fresh and not reader.has_begun and not isinstance(error, TimeoutError)
                if is_stale and call.repeatable:
                    continue
                raise Unreachable(
                    self._server.url, cause_of(error, self._timeout_s), maybe_done=True
                ) from None
            except BaseException:
                connection.close()
                raise
            self._keep(connection, answer)
            return answer

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _connect(self, deadline: float) -> tuple[socket.socket, bool]:
        while True:
            try:
                kept = self._idle.pop()
            except IndexError:
                return self._open(deadline), True
            if not _is_readable(kept):
                return kept, False
            kept.close()

    def _open(self, deadline: float) -> socket.socket:
        server = self._server
        try:
            connection = socket.create_connection((server.host, server.port), timeout=_left(deadline))
            with contextlib.suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not server.secure:
                return connection
            import ssl

            try:
                return ssl.create_default_context().wrap_socket(connection, server_hostname=server.host)
            except BaseException:
                connection.close()
                raise
        except OSError as error:
            raise Unreachable(server.url, cause_of(error, self._timeout_s), maybe_done=False) from None

    def _keep(self, connection: socket.socket, answer: HttpAnswer) -> None:
        if answer.keep and len(self._idle) < IDLE_MAX:
            self._idle.append(connection)
        else:
            connection.close()


def _is_readable(connection: socket.socket) -> bool:
    """Readable while idle: the server has closed it."""
    poll = select.poll()  # not select(), which fails from the 1,024th file on
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def _converse(connection: socket.socket, data: bytes, reader: IncomingAnswer, deadline: float) -> HttpAnswer:
    connection.settimeout(_left(deadline))
    connection.sendall(data)
    while True:
        connection.settimeout(_left(deadline))
        received = connection.recv(READ_BYTES)
        answer = reader.feed(received) if received else reader.end()
        if answer is not None:
            return answer
        if not received:
            raise ConnectionResetError


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
