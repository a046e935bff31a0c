"""The server: listens, ticks once a second, and stops in order."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from email.utils import formatdate

from surehook.core.limits import BODY_READ_BYTES, READ_BYTES
from surehook.http_server.connection import HttpConnection
from surehook.http_server.connections import Connections
from surehook.http_server.exchange import STATUS_LINES, HttpExchange, Message

log = logging.getLogger("surehook.http_server")

Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
# A problem as an answer: status, headers, body.
Render = Callable[[Exception], tuple[int, list[tuple[bytes, bytes]], bytes]]

TICK_S = 1.0
# Turns of a second: a thousand requests, 64,000 chunks, or 16 MiB in reads; each a tenth of a processor or less.
FOLLOW_REST_S = 0.001
REST_S = 0.001  # between two pieces of large bodies, of BODY_READ_BYTES, where several come at once
CLOSE_S = 5.0  # requests under way at a stop may take this long


class HttpServer:
    """An ASGI application on sockets that listen; `pass_time` has to run beside `serve`.

    `now`: wall clock in milliseconds, for the header `date`.
    """

    def __init__(
        self,
        app: App,
        connections: Connections,
        *,
        render: Render,
        now: Callable[[], int],
    ) -> None:
        self.connections = connections
        self.is_stopping = False
        self.small_view = memoryview(bytearray(READ_BYTES))
        self.large_view = memoryview(bytearray(BODY_READ_BYTES))
        self.name: tuple[str, int] | None = None
        self._app = app
        self._render = render
        self._now = now
        self._tasks: set[asyncio.Task[None]] = set()
        self._following: deque[HttpConnection] = deque()
        self._resting: deque[HttpConnection] = deque()
        self._stop = asyncio.Event()
        self._is_empty = asyncio.Event()
        self.date = self._date()

    async def serve(self, sockets: list[socket.socket]) -> None:
        """Serve until `stop`, then until every request is answered, `CLOSE_S` at most."""
        loop = asyncio.get_running_loop()
        self.name = sockets[0].getsockname()[:2]
        backlog = self.connections.bounds.backlog
        servers = [
            await loop.create_server(lambda: HttpConnection(self), sock=each, backlog=backlog)
            for each in sockets
        ]
        await self._stop.wait()
        self.is_stopping = True
        for server in servers:
            server.close()
        await self._empty()

    def stop(self) -> None:
        """Take no more connections, and end when the present ones have been answered."""
        self._stop.set()

    def start(self, exchange: HttpExchange) -> None:
        """Run the application on a request."""
        task = asyncio.get_running_loop().create_task(self._run(exchange))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def follow(self, connection: HttpConnection) -> bool:
        """Let a connection go on, in its turn, with bytes that cost more to take than to send: small chunks, a pipelined
        request, bytes after a refusal. One of all connections goes on at a time, and then the loop rests: only so other
        threads get the interpreter. False if too many wait. Those that wait are not read, so nobody would notice that they
        have gone."""
        if len(self._following) >= self.connections.bounds.following:
            return False
        self._following.append(connection)
        if len(self._following) == 1:
            asyncio.get_running_loop().call_later(FOLLOW_REST_S, self._go_on)
        return True

    def _go_on(self) -> None:
        connection = self._following.popleft()
        while self._following and connection.transport.is_closing():
            connection = self._following.popleft()
        if self._following:
            asyncio.get_running_loop().call_later(FOLLOW_REST_S, self._go_on)
        if not connection.transport.is_closing():
            connection.go_on()

    def rest(self, connection: HttpConnection) -> None:
        """Have it read the next piece of a large body in its turn: in the loop's next turn where nobody else waits for that, else
        one connection a millisecond. A piece is copied twice, into memory that is new: six of them in each turn of the loop made
        such turns two milliseconds long."""
        self._resting.append(connection)
        if len(self._resting) == 1:
            asyncio.get_running_loop().call_soon(self._read_on)

    def _read_on(self) -> None:
        connection = self._resting.popleft()
        if self._resting:
            asyncio.get_running_loop().call_later(REST_S, self._read_on)
        connection.rested()

    def refusal(self, problem: Exception) -> bytes:
        """A whole answer that ends its connection."""
        status, headers, body = self._render(problem)
        lines = [STATUS_LINES[status], self.date]
        lines += [b"%b: %b\r\n" % header for header in headers]
        lines += [b"connection: close\r\n\r\n", body]
        return b"".join(lines)

    async def _run(self, exchange: HttpExchange) -> None:
        try:
            await self._app(exchange.scope(), exchange.receive, exchange.send)
            if not exchange.is_over:
                raise RuntimeError("the application ended without an answer")
        except Exception as error:
            if exchange.is_over:
                log.error("an application failed after its answer", exc_info=error)
            else:
                exchange.fail(error)
        finally:
            exchange.release()

    async def pass_time(self) -> None:
        """End connections that have waited too long, for ever. The task that runs this sees its defects."""
        while True:
            await asyncio.sleep(TICK_S)
            self.date = self._date()
            self.connections.pass_tick()

    def _date(self) -> bytes:
        return b"date: " + formatdate(self._now() / 1000, usegmt=True).encode() + b"\r\n"

    async def _empty(self) -> None:
        """End every connection: those without a request now, the others after their answer or their time."""
        connections = self.connections
        for connection in [*connections.idle, *connections.heads]:
            connection.close_idle()
        connections.on_empty = self._is_empty.set
        if connections.open:
            try:
                async with asyncio.timeout(CLOSE_S):
                    await self._is_empty.wait()
            except TimeoutError:
                if self._tasks:  # else it was only somebody who was refused and sent on
                    log.warning("%d requests were not answered before the stop", len(self._tasks))
                for connection in connections.all():
                    connection.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
