"""A server on a port of its own whose time is the test's: one tick is one second."""

from __future__ import annotations

import asyncio
import inspect
import json
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from surehook.api.problems import rendered
from surehook.http_server.bounds import ServerBounds
from surehook.http_server.connection import HttpConnection
from surehook.http_server.connections import Connections
from surehook.http_server.server import HttpServer

HEAD = b"POST / HTTP/1.1\r\nhost: x\r\n"
GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


def on_both_loops(story: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test on each loop: `serve` uses uvloop where there is one, and they differ in when they read and write."""

    def test(loop: str, **given: Any) -> None:
        with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
            runner.run(story(**given))

    told = inspect.signature(story)
    loop = inspect.Parameter("loop", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    test.__signature__ = told.replace(parameters=[loop, *told.parameters.values()])  # type: ignore[attr-defined]
    test.__name__, test.__doc__, test.__module__ = story.__name__, story.__doc__, story.__module__
    return pytest.mark.parametrize("loop", LOOPS)(test)


class Facts:
    """Telemetry that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []

    def fact(self, name: str, **fields: Any) -> None:
        self.told.append((name, fields))


class Application:
    """Answers with what it got; where told so it waits, answers before the body, or with much."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.asks = asyncio.Event()  # for the body
        self.asks.set()
        self.reads = True
        self.answer: bytes | None = None
        self.pieces = 1
        self.scopes: list[Any] = []
        self.bodies: list[bytes | None] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        await self.asks.wait()
        body: bytes | None = b""
        while self.reads:
            message = await receive()
            if message["type"] == "http.disconnect":
                body = None
                break
            body = (body or b"") + message["body"]
            if not message["more_body"]:
                break
        self.bodies.append(body)
        await self.gate.wait()
        answer = b"%d bytes" % len(body or b"") if self.answer is None else self.answer
        headers = [] if self.pieces > 1 else [(b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for left in range(self.pieces - 1, -1, -1):
            await send({"type": "http.response.body", "body": answer, "more_body": left > 0})


class Caller:
    """One connection, bytes in and out."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, *parts: bytes) -> None:
        """Send these bytes, in pieces that the server reads one by one."""
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()
            await settle()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """The next answer, which has a length."""
        async with asyncio.timeout(10):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {}
            for line in head[1:-2]:
                name, _, value = line.partition(": ")
                assert name not in headers, head
                headers[name] = value
            body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return int(head[0].split()[1]), headers, body

    async def problem(self) -> tuple[int, str]:
        """The status and code of a refusal that ends the connection."""
        status, headers, body = await self.answer()
        assert headers["connection"] == "close", headers
        assert headers["content-type"] == "application/problem+json", headers
        shown = json.loads(body)
        assert shown["status"] == status and shown["detail"]
        assert await self.is_ended()
        return status, shown["code"]

    async def is_ended(self) -> bool:
        """Whether the server has ended its side, with nothing more to read."""
        try:
            async with asyncio.timeout(10):
                return await self.reader.read() == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        self.writer.transport.abort()


class House:
    """The server, the application, and those who call."""

    def __init__(self, **bounds: int) -> None:
        self.app = Application()
        self.facts = Facts()
        self.server = HttpServer(
            self.app, Connections(ServerBounds(**bounds), self.facts), render=rendered, now=lambda: 0
        )
        self.connections = self.server.connections
        self.callers: list[Caller] = []
        self.port = 0

    async def call(self, *, receive_buffer: int = 0) -> Caller:
        """A new connection; `receive_buffer`: bytes that this end's kernel takes, so that an answer gets stuck."""
        connection = socket.socket()
        if receive_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", self.port))
        except OSError:
            connection.close()
            raise
        limit = receive_buffer or 2**16
        reader, writer = await asyncio.open_connection(sock=connection, limit=limit)
        caller = Caller(reader, writer)
        self.callers.append(caller)
        await settle()
        return caller

    async def tick(self, count: int = 1) -> None:
        """Let so many seconds pass."""
        for _ in range(count):
            self.connections.pass_tick()
            await settle()

    async def until_closed(self) -> None:
        """Wait until nobody is connected, and nothing is held for anybody."""
        async with asyncio.timeout(10):
            while self.connections.open:
                await settle()
        held = self.connections
        assert (held.budget.used, held.partial_heads_bytes, held.unsent_bytes) == (0, 0, 0)
        assert held.all() == []


async def settle() -> None:
    """Let the loop deal with what the kernel has."""
    for _ in range(5):
        await asyncio.sleep(0.001)


@asynccontextmanager
async def house(**bounds: int) -> AsyncIterator[House]:
    made = House(**bounds)
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(lambda: HttpConnection(made.server), "127.0.0.1", 0)
    made.port = listening.sockets[0].getsockname()[1]
    try:
        yield made
        for caller in made.callers:
            caller.close()
        made.app.gate.set()
        await made.until_closed()
    finally:
        listening.close()
        for caller in made.callers:
            caller.close()
