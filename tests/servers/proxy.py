"""A TCP proxy that does to connections what networks do, at a moment that a test chooses.

It stands between a client and one server on loopback, in a thread with an event loop of its own:

    with CuttingProxy(server.port) as proxy:
        proxy.cut_at(b"COMMIT", when="answered")   # the server has committed, the client does not hear of it
        …                                          # a client of proxy.port
        assert proxy.cuts == 1
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Self, TypeVar

from tests.servers import ports

When = Literal["seen", "sent", "answered"]
CHUNK = 65_536
CALL_S = 10.0  # an order to the proxy's thread that takes longer means that the thread is dead
CUT_AGAIN_S = 0.05  # at the end: how often connections that came meanwhile are cut
_T = TypeVar("_T")


@dataclass
class Trap:
    """Cut a connection when its client sends these bytes, whatever the case of their letters."""

    pattern: bytes
    when: When
    times: int


class Pair:
    """One client's connection and the one made for it to the server."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.client, self.server = client, server
        self.sprung: Trap | None = None  # waits for the server's answer, to swallow it and cut
        self.tail = b""  # the end of the last chunk: a pattern may lie across two
        self.is_silent = False

    def abort(self) -> None:
        """Both ends, at once and without a farewell."""
        for writer in (self.client, self.server):
            writer.transport.abort()

    @contextlib.contextmanager
    def resets(self) -> Iterator[None]:
        """Pass on that one end was reset, unless the pair is silent: the other end would wait for an answer for ever."""
        try:
            yield
        except OSError:
            if not self.is_silent:
                self.abort()


class CuttingProxy:
    """Forwards from `port` to the server's port; where several are given, to the first that takes the connection.

    All methods may be called from any thread.

    `cuts` counts connections that a trap cut, `cut_ns` is when (nanoseconds of the monotonic clock), `taken` how many
    connections there have been.
    """

    def __init__(self, *server_ports: int) -> None:
        self.port = ports.reserve()
        self.server_ports = server_ports
        self.cut_ns: list[int] = []
        self.taken = 0
        self._traps: list[Trap] = []
        self._pairs: set[Pair] = set()
        self._delay_s = 0.0
        self._flows = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._listener: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # What a test asks for.

    def start(self) -> Self:
        """Listen."""
        self._thread.start()
        self._call(self._thaw)
        self._call(self._listen)
        return self

    def close(self) -> None:
        """Cut everything and end the thread."""
        self._call(self._end)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def cuts(self) -> int:
        """How often a trap has cut."""
        return len(self.cut_ns)

    @property
    def open(self) -> int:
        """How many connections stand now."""
        return len(self._pairs)

    def cut(self) -> int:
        """Cut all connections now; how many there were. New ones are taken."""
        return self._call(self._cut)

    def cut_at(self, pattern: bytes, *, when: When = "sent", times: int = 1) -> None:
        """Cut the next `times` connections whose client sends `pattern`, in letters of either case:

        `seen` before the server gets it, `sent` as soon as the server may have it, `answered` when it has answered, which
        the client does not get to see.
        """

        async def add() -> None:
            self._traps.append(Trap(pattern.lower(), when, times))

        self._call(add)

    def disarm(self) -> None:
        """Forget the traps that have not sprung."""

        async def clear() -> None:
            self._traps.clear()

        self._call(clear)

    def refuse(self) -> None:
        """Cut all connections and refuse new ones, until `accept`."""
        self._call(self._unlisten)
        self._call(self._cut)

    def accept(self) -> None:
        """Take connections again."""
        self._call(self._listen)

    def freeze(self) -> None:
        """Hold every byte back, with connections open, until `thaw`: a network that is gone without a word."""
        self._call(self._freeze)

    def thaw(self) -> None:
        """Let the bytes flow on."""
        self._call(self._thaw)

    def silence(self) -> None:
        """Swallow what comes over the connections that there are now, and leave them open. New ones are as ever."""
        self._call(self._silence)

    def delay(self, seconds: float) -> None:
        """Hold each chunk back for so long, both ways."""
        self._delay_s = seconds

    # What its thread does.

    def _call(self, order: Callable[[], Awaitable[_T]]) -> _T:
        async def run() -> _T:
            return await order()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(CALL_S)

    async def _listen(self) -> None:
        # No asyncio.Server: closed in the moment of an accept it forgets the connection and leaves it open (3.11).
        if self._listener is None:
            self._listener = socket.create_server(("127.0.0.1", self.port), backlog=1024)
            self._listener.setblocking(False)
            self._loop.add_reader(self._listener, self._accepted, self._listener)

    async def _unlisten(self) -> None:
        if self._listener is not None:
            self._loop.remove_reader(self._listener)
            self._listener.close()
            self._listener = None

    def _accepted(self, listener: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionAbortedError):
            taken, _ = listener.accept()
            task = self._loop.create_task(self._take(taken))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _cut(self) -> int:
        pairs = list(self._pairs)
        for pair in pairs:
            pair.abort()
        return len(pairs)

    async def _freeze(self) -> None:
        self._flows.clear()

    async def _thaw(self) -> None:
        self._flows.set()

    async def _silence(self) -> None:
        for pair in self._pairs:
            pair.is_silent = True

    async def _end(self) -> None:
        await self._unlisten()
        self._flows.set()
        while self._tasks:  # one that has just been taken is a task before it is a pair that can be cut
            await self._cut()
            await asyncio.wait(self._tasks, timeout=CUT_AGAIN_S)

    async def _take(self, taken: socket.socket) -> None:
        self.taken += 1
        reader, writer = await asyncio.open_connection(sock=taken)
        way = await self._way()
        if way is None:
            writer.transport.abort()
            return
        there, server = way
        pair = Pair(writer, server)
        self._pairs.add(pair)
        try:
            ways = [self._up(reader, pair), self._down(there, pair)]
            await asyncio.wait([asyncio.create_task(way) for way in ways])
        finally:
            pair.abort()
            self._pairs.discard(pair)

    async def _way(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        for port in self.server_ports:
            with contextlib.suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", port)
        return None

    async def _up(self, reader: asyncio.StreamReader, pair: Pair) -> None:
        """From the client to the server."""
        with pair.resets():
            while chunk := await self._next(reader):
                if pair.is_silent:
                    continue
                trap = self._sprung(pair, chunk)
                if trap is not None and trap.when == "seen":
                    self._spring(pair)
                    return
                pair.sprung = trap if trap is not None and trap.when == "answered" else pair.sprung
                pair.server.write(chunk)
                await pair.server.drain()
                if trap is not None and trap.when == "sent":
                    self._spring(pair)
                    return
            self._end_of(pair.server)

    async def _down(self, reader: asyncio.StreamReader, pair: Pair) -> None:
        """From the server to the client."""
        with pair.resets():
            while chunk := await self._next(reader):
                if pair.is_silent:
                    continue
                if pair.sprung is not None:
                    self._spring(pair)
                    return
                pair.client.write(chunk)
                await pair.client.drain()
            self._end_of(pair.client)

    async def _next(self, reader: asyncio.StreamReader) -> bytes:
        chunk = await reader.read(CHUNK)
        if self._delay_s:
            await asyncio.sleep(self._delay_s)
        await self._flows.wait()
        return chunk

    @staticmethod
    def _end_of(writer: asyncio.StreamWriter) -> None:
        if writer.can_write_eof():
            writer.write_eof()

    def _sprung(self, pair: Pair, chunk: bytes) -> Trap | None:
        for trap in self._traps:
            seen = pair.tail[-(len(trap.pattern) - 1) :] + chunk if len(trap.pattern) > 1 else chunk
            if trap.pattern in seen.lower():
                trap.times -= 1
                if trap.times <= 0:
                    self._traps.remove(trap)
                pair.tail = b""
                return trap
        pair.tail = (pair.tail + chunk)[-256:]
        return None

    def _spring(self, pair: Pair) -> None:
        self.cut_ns.append(time.monotonic_ns())
        pair.abort()
