"""A network of byte pipes in memory, with asyncio's transport semantics at both ends.

Faults a connection can be born with (`Link`): connecting is slow, refused, unreachable or never answered;
bytes take their time, in pieces of any size; after so many bytes the connection is reset, or goes silent
for ever (half-open: neither end is told). Loss on a real TCP connection is delay, so it is not modelled
apart from latency. Bytes are never reordered, doubled or changed: TCP and TLS see to that.

Both ends obey back-pressure: a paused reader stops the pipe, a full pipe pauses its writer.
A process that dies takes its ends with it (`SimNetwork.cut`): what it had written is still on its way,
as a kernel would have it, or is gone, as when the power fails.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Any, Protocol

from msgspec import Struct

from lab.sim.loop import Process, SimLoop, context_of

# Asyncio's own default high-water mark, and what a kernel takes off a writer's hands before that.
PIPE_BYTES_MAX = 65_536
KERNEL_BYTES_MAX = 65_536
SEGMENT_BYTES_MAX = 1_448


Anyone = asyncio.Protocol | asyncio.BufferedProtocol


class Link(Struct):
    """Behaviour of one connection. Seconds and bytes; None: never."""

    connect: str = "open"  # open, refused, unreachable, blackhole
    connect_s: float = 0.002
    secure_s: float = 0.0  # of a handshake beyond the usual
    latency_s: tuple[float, float] = (0.0005, 0.003)  # one way, drawn per segment
    whole: bool = True  # writes arrive as they were made; else cut into segments of any size
    reset_after: int | None = None  # bytes in both directions together, then both ends see a reset
    silent_after: int | None = None  # bytes in both directions together, then nothing passes any more


class Listener(Protocol):
    """Whoever listens at an address."""

    def link(self) -> Link:
        """Behaviour of the next connection to it."""
        ...

    def owner(self) -> Process | None:
        """The process that accepts the next connection; None: the world. Raises ConnectionRefusedError if none does."""
        ...

    def accept(self) -> asyncio.Protocol:
        """The server's end of a new connection."""
        ...


class SimNetwork:
    """Register of who listens where, and of every connection alive."""

    def __init__(self, loop: SimLoop, chance: random.Random) -> None:
        self.loop = loop
        self.chance = chance
        self.dials = 0
        self.dialled: Callable[[Process | None, str], None] = lambda process, address: None  # told of each
        self.connections: dict[int, tuple[SimTransport, SimTransport]] = {}
        self.read = (0, 0.0)  # in which step somebody last read or gave up what had come, and when it came
        self._listeners: dict[tuple[str, int], Listener] = {}

    def listen(self, address: str, port: int, listener: Listener) -> None:
        self._listeners[address, port] = listener

    async def dial(self, process: Process | None, address: str, port: int, protocol: Anyone) -> SimTransport:
        """Open a connection to a literal address. Raises ConnectionRefusedError or OSError as a socket would."""
        self.dials += 1
        number = self.dials
        self.dialled(process, address)
        listener = self._listeners.get((address, port))
        link = listener.link() if listener is not None else Link(connect="refused")
        if link.connect == "blackhole":
            await self.loop.create_future()
        await asyncio.sleep(link.connect_s)
        if link.connect == "refused" or listener is None:
            raise ConnectionRefusedError(111, f"Connect call failed ({address!r}, {port})")
        if link.connect == "unreachable":
            raise OSError(113, f"No route to host ({address!r}, {port})")
        owner = listener.owner()
        local = ("192.0.2.1", 1024 + number % 60_000)
        wire = _Wire(self, number, link)
        client = SimTransport(wire, process, local, (address, port))
        server = SimTransport(wire, owner, (address, port), local)
        client.peer, server.peer = server, client
        self.connections[number] = (client, server)
        server.adopt(listener.accept())
        client.adopt(protocol, now=True)
        return client

    def cut(self, process: Process, *, power: bool = False) -> None:
        """The process is gone. Killed: its written bytes still arrive, then a reset. Power lost: silence."""
        for end in [end for pair in self.connections.values() for end in pair if end.process is process]:
            end.vanish()
            if power:
                end.wire.silent = True
            else:
                end.peer.expect_reset()

    def forget(self, number: int) -> None:
        self.connections.pop(number, None)


class _Wire:
    """State that both directions of a connection share: the byte count and what becomes of it."""

    def __init__(self, network: SimNetwork, number: int, link: Link) -> None:
        self.network = network
        self.number = number
        self.link = link
        self.bytes_passed = 0
        self.silent = False
        self.reset = False

    def carries(self, data: bytes) -> bytes:
        """Bytes of `data` that still get through before the connection's fate."""
        room = len(data)
        if self.link.silent_after is not None:
            room = min(room, max(0, self.link.silent_after - self.bytes_passed))
        if self.link.reset_after is not None:
            room = min(room, max(0, self.link.reset_after - self.bytes_passed))
        self.bytes_passed += room
        if room < len(data):
            if self.link.reset_after is not None and self.bytes_passed >= self.link.reset_after:
                self.reset = True
            else:
                self.silent = True
        return data[:room]


class SimTransport(asyncio.Transport):
    """One end of a connection. `process` None: the world's own end, which never dies."""

    peer: SimTransport

    def __init__(
        self,
        wire: _Wire,
        process: Process | None,
        local: tuple[str, int],
        remote: tuple[str, int],
    ) -> None:
        super().__init__({"peername": remote, "sockname": local, "has_news": self._has_news})
        self.wire = wire
        self.process = process
        self._loop = wire.network.loop
        self._chance = wire.network.chance
        self._context: Context = context_of(process)
        self._protocol: Anyone | None = None
        self._closing = False
        self._lost = False
        self._made = False  # its protocol knows of it
        self._reading = True
        self._eof_sent = False
        self._writing_paused = False
        self._high, self._low = PIPE_BYTES_MAX, PIPE_BYTES_MAX // 4
        self._outgoing = 0  # bytes written here that the other side has not taken
        self._arrivals: deque[tuple[float, bytes | None]] = deque()  # None: the other side's EOF
        self._last_arrival = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._reset_at: float | None = None
        self.wrote_at = 0.0  # loop time of the last write
        self.wrote_wall = 0  # the writer's own wall clock then, milliseconds
        self.wrote_step = 0  # … and the step of the loop

    def adopt(self, protocol: Anyone, *, now: bool = False) -> None:
        """Belong to `protocol`. `now`: the caller's step is already the owner's own."""
        self._protocol = protocol
        if now:
            self._make()
        else:
            self._in_turn(self._make)

    def _make(self) -> None:
        """Before anything else is told: what came due while a process was frozen comes in any order."""
        if not self._made and self._protocol is not None:
            self._made = True
            self._protocol.connection_made(self)

    @property
    def alive(self) -> bool:
        """A dead process's end does nothing, whoever holds a reference to it."""
        return self.process is None or self.process.alive

    # -- writing ---------------------------------------------------------------------------------

    def write(self, data: Any) -> None:
        if not self.alive or self._lost or self._closing or self._eof_sent:
            return
        if data:
            self.wrote_at, self.wrote_step = self._loop.time(), self._loop.steps
            if self.process is not None:
                self.wrote_wall = self.process.wall()
            self._send(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def _send(self, data: bytes) -> None:
        if self.wire.silent or self.wire.reset:
            return
        passed = self.wire.carries(data)
        at = 0
        while at < len(passed):
            size = len(passed) - at if self.wire.link.whole else self._chance.randint(1, SEGMENT_BYTES_MAX)
            piece = passed[at : at + size]
            at += len(piece)
            self._outgoing += len(piece)
            self.peer._expect(piece)
        if self.wire.reset:
            self.expect_reset()
            self.peer.expect_reset()
        if self.get_write_buffer_size() > self._high and not self._writing_paused:
            self._writing_paused = True
            if self._protocol is not None:
                self._protocol.pause_writing()

    def write_eof(self) -> None:
        if not self.alive or self._lost or self._eof_sent:
            return
        self._eof_sent = True
        if not self.wire.silent and not self.wire.reset:
            self.peer._expect(None)

    def can_write_eof(self) -> bool:
        return True

    def get_write_buffer_size(self) -> int:
        return max(0, self._outgoing - KERNEL_BYTES_MAX)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = PIPE_BYTES_MAX if high is None else high
        self._low = self._high // 4 if low is None else low

    def _taken(self, size: int) -> None:
        """The other side has read `size` of our bytes."""
        self._outgoing -= size
        if self._writing_paused and self.get_write_buffer_size() <= self._low and not self._lost:
            self._writing_paused = False
            if self._protocol is not None and self.alive:
                self._in_turn(self._protocol.resume_writing)

    # -- reading ---------------------------------------------------------------------------------

    def _expect(self, data: bytes | None) -> None:
        low, high = self.wire.link.latency_s
        at = max(self._last_arrival, self._loop.time() + low + (high - low) * self._chance.random())
        self._last_arrival = at
        self._arrivals.append((at, data))
        self._schedule()

    def expect_reset(self) -> None:
        """After what is already under way, this end sees a reset."""
        if self._reset_at is None:
            self._reset_at = max(self._last_arrival, self._loop.time() + self.wire.link.latency_s[0])
            self._schedule()

    def _schedule(self) -> None:
        if self._timer is not None or self._lost:
            return
        if self._arrivals:
            if self._reading:
                self._timer = self._loop.call_at(self._arrivals[0][0], self._arrive, context=self._context)
        elif self._reset_at is not None:
            self._timer = self._loop.call_at(self._reset_at, self._arrive, context=self._context)

    def _arrive(self) -> None:
        self._timer = None
        if self._lost or self._protocol is None:
            return
        self._make()
        if self._arrivals and self._reading:
            at, data = self._arrivals.popleft()
            self._reads(at)
            if data is None:
                self._ended(self._protocol)
            else:
                self.peer._taken(len(data))
                if not self._closing:
                    _hand_over(self._protocol, data)
        elif not self._arrivals and self._reset_at is not None:
            self._lose(ConnectionResetError(104, "Connection reset by peer"))
        self._schedule()

    def _has_news(self) -> bool:
        return bool(self._arrivals) and self._arrivals[0][0] <= self._loop.time()

    def _reads(self, at: float) -> None:
        if self.process is not None:
            self.wire.network.read = (self._loop.steps, at)

    def _ended(self, protocol: Anyone) -> None:
        if not self._closing and not protocol.eof_received():
            self.close()

    def pause_reading(self) -> None:
        self._reading = False
        if self._timer is not None and self._arrivals:
            self._timer.cancel()
            self._timer = None

    def resume_reading(self) -> None:
        self._reading = True
        self._schedule()

    def is_reading(self) -> bool:
        return self._reading and not self._closing

    # -- ending ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Flush, then FIN. Nothing more is received."""
        if self._closing or self._lost or not self.alive:
            return
        self.write_eof()
        self._closing = True
        self._in_turn(self._finish, None)

    def abort(self) -> None:
        """Reset, at once."""
        if self._lost or not self.alive:
            return
        self._closing = True
        if self._arrivals and self._reading:
            self._reads(self._arrivals[0][0])
        if not self.wire.silent:
            self.peer.expect_reset()
        self._in_turn(self._finish, None)

    def is_closing(self) -> bool:
        return self._closing or self._lost

    def _finish(self, error: Exception | None) -> None:
        self._lose(error)

    def _lose(self, error: Exception | None) -> None:
        if self._lost:
            return
        self.vanish()
        if self._protocol is not None and self.alive:
            self._make()
            self._protocol.connection_lost(error)

    def vanish(self) -> None:
        """This end is gone without a word to its protocol."""
        self._lost = self._closing = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.peer._lost:
            self.wire.network.forget(self.wire.number)

    def _in_turn(self, step: Callable[..., object], *args: Any) -> None:
        self._loop.call_soon(step, *args, context=self._context)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.Protocol | asyncio.BufferedProtocol)
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self._protocol is not None
        return self._protocol


def _hand_over(protocol: Anyone, data: bytes) -> None:
    """As asyncio does it: at most one buffer's worth at a time, while the protocol is still interested."""
    if isinstance(protocol, asyncio.Protocol):
        protocol.data_received(data)
        return
    at = 0
    while at < len(data):
        buffer = protocol.get_buffer(len(data) - at)
        size = min(len(data) - at, len(buffer))  # type: ignore[arg-type]
        buffer[:size] = data[at : at + size]  # type: ignore[index]
        protocol.buffer_updated(size)
        at += size
