"""A small HTTP/1.1 server for trying things out: keep-alive, bounded, one answer a request.

Its behaviour is a value: delay, status, rate of failures. It is a tool for one's own machine, not the receiver
library.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Literal

from msgspec import Struct

HEAD_BYTES_MAX = 64 * 1024
BODY_BYTES_MAX = 1024 * 1024  # four times the largest event
IDLE_S = 75.0  # a kept connection without a request
HANG_S = 120.0  # a silent receiver lets go then: far above every timeout of the demonstration

Failure = Literal["status", "hang_up"]


class HttpRequest(Struct, frozen=True):
    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


class HttpReply(Struct, frozen=True):
    """An answer; `status` None closes the connection without one."""

    status: int | None = 200
    body: bytes = b""
    content_type: str = "application/json"
    delay_s: float = 0.0


class Behaviour(Struct, frozen=True):
    """Answer `status` after `delay_s`; a fraction `flaky` (0 to 1) of requests meets a failure instead."""

    status: int = 200
    delay_s: float = 0.0
    flaky: float = 0.0
    hangs: bool = False

    def reply(self, drawn: float) -> HttpReply:
        """The reply to a request that drew `drawn` in [0, 1)."""
        if self.hangs:
            return HttpReply(None, delay_s=HANG_S)
        if drawn < self.flaky / 3:
            return HttpReply(None, delay_s=self.delay_s)  # a third of the failures never answers
        if drawn < self.flaky:
            return HttpReply(500 if self.status < 500 else 200, delay_s=self.delay_s)
        return HttpReply(self.status, delay_s=self.delay_s)


# Decides the reply; the second call tells whether it was written to a connection that was still open.
Answer = Callable[[HttpRequest], Awaitable[HttpReply]]
Written = Callable[[HttpRequest, HttpReply], None]


class HttpReceiver:
    """Listens from `start` until `stop`."""

    def __init__(self, answer: Answer, written: Written | None = None) -> None:
        self._answer = answer
        self._written = written
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port (which 0 lets the system choose). Raises OSError."""
        self._server = await asyncio.start_server(
            self._connected, host, port, limit=HEAD_BYTES_MAX, backlog=1024
        )
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in sorted(self._open, key=lambda task: task.get_name()):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            while await self._one(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, TimeoutError):
            pass  # whatever a stranger sends ends the connection and nothing else
        except asyncio.CancelledError:
            pass  # `stop` waits for this task itself
        finally:
            self._open.discard(task)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its reply; False: the connection is over."""
        async with asyncio.timeout(IDLE_S):
            head = await reader.readuntil(b"\r\n\r\n")
            request = _parse(head)
            length = int(request.header("content-length") or 0)
            if not 0 <= length <= BODY_BYTES_MAX:
                return False
            request = HttpRequest(
                request.method, request.path, request.headers, await reader.readexactly(length)
            )
        reply = await self._answer(request)
        if reply.delay_s and not await _waits(reader, reply.delay_s):
            return False
        if reply.status is None:
            return False
        writer.write(_render(reply))
        await writer.drain()
        if self._written is not None:
            self._written(request, reply)
        return (request.header("connection") or "").lower() != "close"


async def _waits(reader: asyncio.StreamReader, delay_s: float) -> bool:
    """Let `delay_s` pass; False as soon as the other side hangs up (or talks on instead of listening)."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(delay_s):
            await reader.read(1)
            return False
    return True


def _parse(head: bytes) -> HttpRequest:
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = []
    for line in lines:
        name, _, value = line.partition(":")
        headers.append((name.strip(), value.strip()))
    return HttpRequest(method, path, headers, b"")


def _render(reply: HttpReply) -> bytes:
    lines = [f"HTTP/1.1 {reply.status} X", f"content-length: {len(reply.body)}"]
    if reply.body:
        lines.append(f"content-type: {reply.content_type}")
    return "\r\n".join([*lines, "", ""]).encode() + reply.body
