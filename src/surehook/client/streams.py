"""Requests over asyncio streams: the twin of `sockets`, with a bound on requests under way."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from surehook.client.calls import ApiCall, ServerUrl
from surehook.client.causes import cause_of
from surehook.client.errors import Unreachable
from surehook.client.http1 import HttpAnswer, IncomingAnswer, NotHttp, render

READ_BYTES = 64 * 1024

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Streams:
    """The connections of one client, idle ones newest last."""

    def __init__(self, server: ServerUrl, timeout_s: float, connections: int) -> None:
        self._server = server
        self._timeout_s = timeout_s
        self._bound = connections
        self._turns = asyncio.Semaphore(connections)  # so there are never more idle ones either
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle: list[Connection] = []

    async def exchange(self, call: ApiCall, headers: Mapping[str, str]) -> HttpAnswer:
        """One request, one answer. Raises Unreachable."""
        data = render(call.method, self._server.prefix + call.path, headers, call.body)
        self._of_this_loop()
        async with self._turns:
            while True:
                answer = await self._attempt(call, data)
                if answer is not None:
                    return answer

    def close(self) -> None:
        while self._idle:
            self._idle.pop()[1].close()

    def _of_this_loop(self) -> None:
        """Forget connections of a loop that has ended, as of an earlier `asyncio.run`: they ended with it."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._turns = loop, asyncio.Semaphore(self._bound)
            self._idle.clear()

    async def _attempt(self, call: ApiCall, data: bytes) -> HttpAnswer | None:
        """None: a kept connection had been closed by the server before it heard anything."""
        kept = self._take()
        reader = IncomingAnswer()
        connection: Connection | None = kept
        try:
            async with asyncio.timeout(self._timeout_s):
                connection = kept or await self._open()
                answer = await _converse(connection, data, reader)
        except (OSError, NotHttp) as error:
            if connection is not None:
                connection[1].close()
            if (
                kept is not None
                and call.repeatable
                and not reader.has_begun
                and not isinstance(error, TimeoutError)
            ):
                return None
            cause = cause_of(error, self._timeout_s)
            raise Unreachable(self._server.url, cause, maybe_done=connection is not None) from None
        except BaseException:
            if connection is not None:
                connection[1].close()
            raise
        if answer.keep:
            self._idle.append(connection)
        else:
            connection[1].close()
        return answer

    def _take(self) -> Connection | None:
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        return None

    async def _open(self) -> Connection:
        server = self._server
        if not server.secure:
            return await asyncio.open_connection(server.host, server.port)
        import ssl

        context = ssl.create_default_context()
        return await asyncio.open_connection(
            server.host, server.port, ssl=context, server_hostname=server.host
        )


async def _converse(connection: Connection, data: bytes, parser: IncomingAnswer) -> HttpAnswer:
    reader, writer = connection
    writer.write(data)
    await writer.drain()
    while True:
        received = await reader.read(READ_BYTES)
        answer = parser.feed(received) if received else parser.end()
        if answer is not None:
            return answer
        if not received:
            raise ConnectionResetError
