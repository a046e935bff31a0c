"""Scripted receivers on real sockets: a script is what to do with each connection, in order.

    Say(b"…")        send bytes            Wait(s)         do nothing for a while
    Drip(b"…", s)    a byte every s        Hear()          read one whole request (head and body)
    Reset()          close with RST        Hang()          keep the connection until the test is over
    Flood(b"…")      send it for ever

A script that ends closes the connection. `requests` holds what was read, `connections` counts accepts.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Say:
    data: bytes


@dataclass(frozen=True)
class Drip:
    data: bytes
    gap_s: float


@dataclass(frozen=True)
class Flood:
    data: bytes


@dataclass(frozen=True)
class Wait:
    seconds: float


@dataclass(frozen=True)
class Hear:
    pass


@dataclass(frozen=True)
class Reset:
    pass


@dataclass(frozen=True)
class Hang:
    pass


Step = Say | Drip | Flood | Wait | Hear | Reset | Hang


class Receiver:
    """Plays `scripts[n]` on the n-th connection, the last one again on all further ones."""

    def __init__(self, *scripts: tuple[Step, ...]) -> None:
        self.scripts = scripts
        self.requests: list[bytes] = []
        self.connections = 0
        self.port = 0
        self.heard = asyncio.Event()  # a request was read
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @contextlib.asynccontextmanager
    async def running(self, *, ssl: object = None, port: int = 0) -> AsyncIterator[Receiver]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", port, ssl=ssl)  # type: ignore[arg-type]
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        script = self.scripts[min(self.connections, len(self.scripts) - 1)]
        self.connections += 1
        try:
            for step in script:
                await self._play(step, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            if isinstance(script[-1], Reset) and writer.get_extra_info("ssl_object") is None:
                writer.transport.abort()
            else:
                writer.close()

    async def _play(self, step: Step, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        match step:
            case Say(data):
                writer.write(data)
                await writer.drain()
            case Drip(data, gap_s):
                for byte in data:
                    if writer.transport.is_closing():
                        raise ConnectionResetError
                    writer.write(bytes((byte,)))
                    await asyncio.sleep(gap_s)
            case Flood(data):
                while not writer.transport.is_closing():
                    writer.write(data)
                    await writer.drain()
                    await asyncio.sleep(0)
            case Wait(seconds):
                await asyncio.sleep(seconds)
            case Hear():
                self.requests.append(await hear(reader))
                self.heard.set()
            case Reset():
                raw = writer.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
            case Hang():
                await asyncio.Event().wait()


async def hear(reader: asyncio.StreamReader) -> bytes:
    """One request with its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    size = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            size = int(line[15:])
    return head + await reader.readexactly(size)
