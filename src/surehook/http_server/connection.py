"""One connection: from bytes to requests, one at a time.

While a request is in hand at most one read (READ_BYTES) of what follows is kept, and nothing more is read. So a
connection holds a head, or a body within the byte budget, or the beginning of the next request: never a queue.
"""

from __future__ import annotations

import asyncio
from typing import Protocol, cast

from surehook.core import limits
from surehook.core.errors import Problem
from surehook.core.http1 import request_head
from surehook.http_server import refusals
from surehook.http_server.connections import Connections, Line
from surehook.http_server.exchange import HttpExchange, ServerState


class ConnectionServer(ServerState, Protocol):
    """The server, as far as a connection needs it."""

    connections: Connections
    small_view: memoryview
    large_view: memoryview

    def start(self, exchange: HttpExchange) -> None: ...
    def follow(self, connection: HttpConnection) -> bool: ...
    def rest(self, connection: HttpConnection) -> None: ...
    def refusal(self, problem: Exception) -> bytes: ...


class HttpConnection(asyncio.BufferedProtocol):
    """Reads through one buffer of the server's, so that the loop never reads more than that at a time."""

    __slots__ = (
        "_counted", "_has_left", "_held", "_is_ending", "_is_paused", "_is_resting", "_linger_bytes",
        "_unsent", "_view", "client", "connections", "exchange", "is_eof", "is_stuck", "line", "server",
        "transport",
    )  # fmt: skip

    def __init__(self, server: ConnectionServer) -> None:
        self.server = server
        self.connections = server.connections
        self.transport: asyncio.Transport = cast(asyncio.Transport, None)
        self.client: tuple[str, int] | None = None
        self.line: Line = server.connections.heads
        self.exchange: HttpExchange | None = None
        self.is_eof = False
        self.is_stuck = False  # the kernel takes no more bytes of an answer
        self._held = bytearray()  # of a head that has not ended, or of the request after the one in hand
        self._view = server.small_view
        self._counted = 0  # bytes of `_held` that are counted as a partial head
        self._unsent = 0
        self._is_paused = False
        self._is_resting = False  # until the loop's next turn
        self._is_ending = False  # bytes that still come are thrown away
        self._linger_bytes = limits.LINGER_BYTES
        self._has_left = False

    # -- called by the loop -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        name = transport.get_extra_info("peername")
        self.client = None if name is None else name[:2]
        self.transport.set_write_buffer_limits(high=0)  # `is_stuck` is told once the kernel takes no more
        if not self.connections.admit(self):
            self.connections.refused["too_many_connections"] += 1
            if len(self.connections.ending) >= limits.CONNECTIONS_REFUSED:
                self.abort()
            else:
                self.end(refusals.too_many_connections(self.connections.bounds.connections))

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()

    def get_buffer(self, sizehint: int) -> memoryview:
        view = self.server.small_view
        if self.exchange is not None and self.exchange.reserved > self.exchange.body_size:
            left = self.exchange.reserved - self.exchange.body_size
            view = self.server.large_view[: left + limits.READ_BYTES]
        self._view = view
        return view

    def buffer_updated(self, nbytes: int) -> None:
        # There is more: libuv would read up to 32 times as much before it looks at others.
        if nbytes == len(self._view):
            self._rest()
        if not self._is_ending:
            self.take(bytes(self._view[:nbytes]))
            return
        self._linger_bytes -= nbytes
        if self._linger_bytes < 0:
            self.abort()
        else:
            self.follow()

    def eof_received(self) -> bool:
        # A caller may say at once that nothing more will come, and wait for the answer.
        self.is_eof = True
        return self.exchange is not None and self.exchange.is_whole

    def pause_writing(self) -> None:
        self.is_stuck = True
        if self._has_left:
            return
        self._unsent = self.transport.get_write_buffer_size()
        self.connections.move(self, self.connections.answers)
        self.connections.hold_unsent(self, self._unsent)

    def resume_writing(self) -> None:
        self.is_stuck = False
        self.connections.unsent_bytes -= self._unsent
        self._unsent = 0
        exchange = self.exchange
        if self._has_left:
            return
        if self._is_ending:
            self.connections.move(self, self.connections.ending)
        elif exchange is None:
            self._next()
        elif exchange.is_over:
            self.exchange = None
            self._close()
        else:
            line = self.connections.bodies if exchange.wants_body else self.connections.working
            self.connections.move(self, line)
            exchange.wake()

    # -- requests in ------------------------------------------------------------------------------------

    def take(self, data: bytes) -> None:
        """Take bytes, whatever they belong to."""
        exchange = self.exchange
        if exchange is None and not self.is_stuck:
            self._take_head(data)
            return
        if exchange is not None and not exchange.is_whole:
            try:
                data = exchange.feed(data)
            except Problem as problem:
                self.refuse(problem, problem.code)
                return
            if exchange.is_whole and self.line is self.connections.bodies:
                self.connections.move(self, self.connections.working)
        if data:
            self._held += data
            self.pause_reading()

    def _take_head(self, data: bytes) -> None:
        """Take bytes where a head is expected."""
        held = self._held
        seen = len(held)
        if seen:
            held += data
            cut = held.find(request_head.END, max(0, seen - 3))
            data = bytes(held) if cut >= 0 else b""
        else:
            if data[:2] == b"\r\n":  # left behind by the request before, as RFC 9112 section 2.2 allows
                data = data[2:]
            cut = data.find(request_head.END)
        try:
            if cut < 0:
                self._wait_for_head(data, seen)
                return
            if cut + 4 > limits.HEAD_BYTES:
                raise request_head.head_too_large(f"the head is longer than {limits.HEAD_BYTES:,} bytes")
            head = request_head.parse(data[: cut + 4])
        except Problem as problem:
            self.connections.refused[problem.code] += 1
            self.end(problem)
            return
        self._forget_head()
        self._begin(HttpExchange(self, head), data[cut + 4 :])

    def _wait_for_head(self, data: bytes, seen: int) -> None:
        if not seen:
            self._held += data
        if not self._held:
            return
        request_head.examine(self._held, seen)
        if self.line is not self.connections.heads:
            self.connections.move(self, self.connections.heads)
        self._resume_reading()
        new = len(self._held) - self._counted
        self._counted += new
        self.connections.hold_head(new)

    def _forget_head(self) -> None:
        """Drop the head in `_held`, which has ended or is given up."""
        if self._counted:
            self.connections.partial_heads_bytes -= self._counted
            self._counted = 0
            self._held.clear()

    def _begin(self, exchange: HttpExchange, rest: bytes) -> None:
        """Begin a request; `rest` came behind its head."""
        self.exchange = exchange
        self.connections.move(self, self.connections.working)
        if rest:
            self.take(rest)
        if self.exchange is exchange:  # and not refused for the beginning of its body
            self.server.start(exchange)

    def want_body(self, exchange: HttpExchange) -> None:
        """Read the body, for which the application asks; its time begins now."""
        if exchange.head.expects_continue and not exchange.body_size:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.connections.move(self, self.connections.bodies)
        if not exchange.has_unread:
            self._resume_reading()

    @property
    def body_received(self) -> int:
        """Bytes of the body in hand so far."""
        return 0 if self.exchange is None else self.exchange.body_size

    def is_behind(self, age: int) -> bool:
        """True if the body in hand, at its pace so far, will not be complete in time."""
        if self.exchange is None or self.exchange.reserved <= limits.READ_BYTES:
            return False
        return self.exchange.body_size * self.connections.bounds.body < self.exchange.reserved * age

    def pause_reading(self) -> None:
        if not self._is_paused and not self.is_eof:
            self._is_paused = True
            if not self._is_resting:
                self.transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._is_paused and not self.is_eof and not self._has_left:
            self._is_paused = False
            if not self._is_resting:
                self.transport.resume_reading()

    def _rest(self) -> None:
        self._is_resting = True
        self.transport.pause_reading()
        if len(self._view) > limits.READ_BYTES:
            self.server.rest(self)
        else:
            asyncio.get_running_loop().call_soon(self.rested)

    def rested(self) -> None:
        """Read on after a rest."""
        self._is_resting = False
        if not (self._is_paused or self.is_eof or self._has_left or self.transport.is_closing()):
            self.transport.resume_reading()

    # -- answers out ------------------------------------------------------------------------------------

    def answered(self, exchange: HttpExchange) -> None:
        """Go on after the last byte of an answer was written."""
        if not exchange.keep:
            if exchange.is_whole:
                self._finish_and_close()
            else:
                self.exchange = None
                self._linger()
            return
        self.exchange = None
        if not self.is_stuck:
            self._next()

    def _finish_and_close(self) -> None:
        if self.is_stuck:
            return  # `resume_writing` closes
        self.exchange = None
        self._close()

    def _next(self) -> None:
        """Go on with bytes that came meanwhile, or wait."""
        if self.transport.is_closing():
            return
        if self._held:
            self.connections.move(self, self.connections.idle)
            self.follow()
        elif self.is_eof or self.server.is_stopping:
            self._close()
        else:
            self.connections.move(self, self.connections.idle)
            self._resume_reading()

    def follow(self) -> None:
        """Stop reading until the turn of this connection comes to go on with the bytes at hand."""
        if self.server.follow(self):
            self.pause_reading()
        elif self.exchange is not None:
            self.refuse(refusals.too_many_chunks(), "small_pieces")
        else:
            self.connections.refused["small_pieces"] += 1
            self.abort()

    def go_on(self) -> None:
        """Take this connection's turn: for bytes to throw away, for remaining chunks, or for a pipelined request."""
        if self._is_ending:
            self._resume_reading()
            return
        exchange = self.exchange
        if exchange is not None:
            exchange.go_on()
            if self.exchange is exchange and not exchange.has_unread and not self._held:
                self._resume_reading()
            return
        if self.is_stuck or not self._held:
            return
        data = bytes(self._held)
        self._held.clear()
        self._take_head(data)
        if self.exchange is None and not self.transport.is_closing():
            self._resume_reading()

    def refuse(self, problem: Exception, reason: str) -> None:
        """Give up the request in hand."""
        self.connections.refused[reason] += 1
        exchange = self.exchange
        self.exchange = None
        if exchange is None:
            self.end(problem)
            return
        has_begun = exchange.has_begun
        exchange.give_up()
        if has_begun:
            self.abort()
        else:
            self.end(problem)

    def end(self, problem: Exception) -> None:
        """Answer with the problem, and close."""
        self.transport.write(self.server.refusal(problem))
        self._linger()

    def _linger(self) -> None:
        """End the answer and read on for a while: closing a connection over unread bytes discards what was written to it."""
        if self.transport.is_closing() or self._has_left:
            return
        self._is_ending = True
        self._forget_head()
        self._held.clear()
        if not self.is_stuck:
            self.connections.move(self, self.connections.ending)
        if self.is_eof:
            self._close()
            return
        self._resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def close_idle(self) -> None:
        """Close an idle connection."""
        self._close()

    def end_late_head(self) -> None:
        """End a connection whose head is not complete in time; without an answer if not a byte of it came."""
        if not self._held:
            self._close()
            return
        self.connections.refused["head_timeout"] += 1
        self.end(refusals.head_too_late())

    def unsent_moved(self) -> int:
        """Bytes that the caller has taken since the last call of this."""
        left = self.transport.get_write_buffer_size()
        moved = self._unsent - left
        self.connections.unsent_bytes -= moved
        self._unsent = left
        return moved

    def abort(self) -> None:
        """End at once; bytes that are not sent are lost."""
        self.transport.abort()
        self._leave()

    def _close(self) -> None:
        self.transport.close()

    def _leave(self) -> None:
        """Give back everything, once."""
        if self._has_left:
            return
        self._has_left = True
        self._forget_head()
        self.connections.unsent_bytes -= self._unsent
        self._unsent = 0
        self.connections.leave(self)
        if self.exchange is not None:
            self.exchange.give_up()
            self.exchange = None
        self._held.clear()
