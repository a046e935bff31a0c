"""One request and its answer, as ASGI sees them."""

from __future__ import annotations

import asyncio
import http
import re
from collections.abc import MutableMapping
from typing import Any, Protocol
from urllib.parse import unquote

from surehook.core import limits
from surehook.core.errors import Problem
from surehook.core.http1.request_chunks import ChunkReader
from surehook.core.http1.request_head import RequestHead
from surehook.http_server import refusals
from surehook.http_server.connections import Connections

Message = MutableMapping[str, Any]

ASGI = {"version": "3.0", "spec_version": "2.3"}
STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in http.HTTPStatus
}
WITHOUT_BODY = frozenset({204, 304})
_BROKEN_LINE = re.compile(rb"[\r\n\0]")


class ServerState(Protocol):
    """The server, as far as an answer needs it."""

    name: tuple[str, int] | None
    date: bytes
    is_stopping: bool


class ExchangeConnection(Protocol):
    """The connection, as far as an exchange needs it."""

    connections: Connections
    transport: asyncio.Transport
    client: tuple[str, int] | None
    is_stuck: bool

    @property
    def server(self) -> ServerState: ...
    def take(self, data: bytes) -> None: ...
    def want_body(self, exchange: HttpExchange) -> None: ...
    def pause_reading(self) -> None: ...
    def follow(self) -> None: ...
    def answered(self, exchange: HttpExchange) -> None: ...
    def refuse(self, problem: Exception, reason: str) -> None: ...
    def abort(self) -> None: ...


class HttpExchange:
    """`receive` and `send` are the application's; everything else is the connection's."""

    __slots__ = (
        "_answer", "_chunks", "_connection", "_is_asked", "_is_chunked", "_is_given", "_parts", "_unread",
        "_waiter", "body_size", "has_begun", "head", "is_over", "is_whole", "keep", "reserved", "status",
    )  # fmt: skip

    def __init__(self, connection: ExchangeConnection, head: RequestHead) -> None:
        self._connection = connection
        self.head = head
        self.keep = head.keep
        self.body_size = 0  # bytes that have come
        self.reserved = 0  # bytes of the budget
        self.is_whole = head.length == 0  # the body has come to its end
        self.is_over = False  # answered, or given up
        self.has_begun = False  # bytes of the answer are written
        self.status = 0
        self._chunks = ChunkReader() if head.length is None else None
        # Chunks are taken apart once the application asks: a request that is refused by its head costs no more than that.
        self._unread = b""  # … and a few at a time
        self._parts: list[bytes] = []
        self._is_asked = False
        self._is_given = False
        self._is_chunked = False
        self._answer: Message | None = None
        self._waiter: asyncio.Future[None] | None = None

    def scope(self) -> Message:
        """The request as an application gets it."""
        head = self.head
        path = head.path.decode("ascii")
        return {
            "type": "http",
            "asgi": ASGI,
            "http_version": head.http_version,
            "method": head.method,
            "scheme": "http",
            "path": unquote(path) if "%" in path else path,
            "raw_path": head.path,
            "query_string": head.query,
            "root_path": "",
            "headers": head.headers,
            "client": self._connection.client,
            "server": self._connection.server.name,
        }

    @property
    def wants_body(self) -> bool:
        """The application has asked for the body, and it has not ended."""
        return self._is_asked and not self.is_whole

    # -- the request ------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the body; returns those behind its end. Raises Problem."""
        if self._chunks is not None:
            if not self._is_asked or self._unread:
                self._unread += data
                self._connection.pause_reading()
                return b""
            rest = self._chunks.feed(data, self._parts)
            self.body_size = self._chunks.size
            self.is_whole = self._chunks.done
            if rest and not self.is_whole:
                self._unread, rest = rest, b""
                self._connection.follow()
                if self.is_over:  # too many wait for their turns
                    return b""
        else:
            assert self.head.length is not None
            wanted = self.head.length - self.body_size
            rest = data[wanted:]
            part = data[:wanted] if rest else data
            self._parts.append(part)
            self.body_size += len(part)
            self.is_whole = len(part) == wanted
        if self._is_asked:
            self._reserve()
            self.wake()
        elif not self.is_whole and self.body_size > limits.READ_BYTES:
            self._connection.pause_reading()  # until the application wants it
        return rest

    def _reserve(self) -> None:
        """Reserve the announced bytes of the body in the budget. Raises Problem."""
        needed = self.head.length or self.body_size
        if needed <= limits.READ_BYTES or needed <= self.reserved:
            return  # what one read brings is bounded by the number of connections
        connections = self._connection.connections
        if self._chunks is not None:
            needed += limits.EVENT_BODY_BYTES - 1  # grows by steps
            needed -= needed % limits.EVENT_BODY_BYTES
        if needed > connections.budget.large_limit:
            raise refusals.body_too_large(connections.budget.large_limit)
        if not connections.reserve(needed - self.reserved, of=needed):
            raise refusals.too_many_bytes()
        self.reserved = needed

    async def receive(self) -> Message:
        """The next part of the body, or the news that the caller has gone."""
        if not self._is_asked and not self.is_over:
            self._is_asked = True
            if not self.is_whole:
                self._begin_body()
        while not self.is_over and (self._is_given or not (self._parts or self.is_whole)):
            await self._wait()
        if self.is_over:
            return {"type": "http.disconnect"}
        parts = self._parts
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        self._parts = []
        self._is_given = self.is_whole
        return {"type": "http.request", "body": body, "more_body": not self.is_whole}

    def go_on(self) -> None:
        """Read on where chunks are left unread."""
        if self._unread:
            unread, self._unread = self._unread, b""
            self._connection.take(unread)

    @property
    def has_unread(self) -> bool:
        """Bytes have come that are not taken apart."""
        return bool(self._unread)

    def _begin_body(self) -> None:
        self.go_on()
        if self.is_over or self.is_whole:
            return
        try:
            self._reserve()
        except Problem as problem:
            self._connection.refuse(problem, problem.code)
            return
        self._connection.want_body(self)

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def wake(self) -> None:
        """Wake the application: bytes have come, or the caller has gone."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def give_up(self) -> None:
        """End the request without its answer: the caller has gone, or was refused."""
        self.is_over = True
        self._parts = []
        if not self.is_whole:
            self.release()  # the application hears of it in the loop's next turn, and drops what it has
        self.wake()

    def fail(self, error: Exception) -> None:
        """Answer for an application that failed before the end of its answer."""
        if self.has_begun:
            self._connection.abort()
        else:
            self._connection.refuse(error, "internal")

    def release(self) -> None:
        """Give the bytes of the body back to the budget, since the application has ended."""
        self._connection.connections.budget.give(self.reserved)
        self.reserved = 0

    # -- the answer -------------------------------------------------------------------------------------

    async def send(self, message: Message) -> None:
        """Write an answer: its beginning waits for the first part of its body."""
        if self.is_over:
            return
        if message["type"] == "http.response.start":
            self._answer = message
            return
        connection = self._connection
        body = message.get("body", b"")
        is_last = not message.get("more_body", False)
        if self.has_begun:
            content = self._part(body, is_last)
        else:
            content = self._beginning(body, is_last)
            self.has_begun = True
        if is_last:
            self.is_over = True
        if content:
            connection.transport.write(content)
        if is_last:
            connection.answered(self)
            return
        while connection.is_stuck and not self.is_over:
            await self._wait()

    def _beginning(self, body: bytes, is_last: bool) -> bytes:
        assert self._answer is not None, "the body of an answer came before its status"
        self.status = status = self._answer["status"]
        if not self.is_whole or self._connection.server.is_stopping:
            self.keep = False
        parts = [STATUS_LINES[status], self._connection.server.date]
        has_length = status in WITHOUT_BODY
        for name, value in self._answer.get("headers", ()):
            if _BROKEN_LINE.search(value) is not None:
                raise ValueError(f"a line break in the answer's header {name!r}")
            if name == b"content-length":
                has_length = True
            elif name == b"connection":
                self.keep = self.keep and b"close" not in value.lower()
                continue
            parts += (name, b": ", value, b"\r\n")
        if not has_length:
            if is_last:
                parts.append(b"content-length: %d\r\n" % len(body))
            elif self.head.http_version == "1.1":
                self._is_chunked = True
                parts.append(b"transfer-encoding: chunked\r\n")
            else:
                self.keep = False
        parts.append(b"\r\n" if self.keep else b"connection: close\r\n\r\n")
        parts.append(self._part(body, is_last))
        return b"".join(parts)

    def _part(self, body: bytes, is_last: bool) -> bytes:
        if self.head.method == "HEAD" or self.status in WITHOUT_BODY:
            return b""
        if not self._is_chunked:
            return body
        part = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
        return part + b"0\r\n\r\n" if is_last else part
