"""A network in memory behind the dial seam: every dial is counted, every address answers what it was told."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class MemoryTransport(asyncio.Transport):
    def __init__(self, network: Network, protocol: Any, peer: tuple[str, int]) -> None:
        super().__init__({"peername": peer})
        self.network = network
        self.protocol = protocol
        self.peer = peer
        self.heard = b""
        self.is_over = False
        self.unwritten = 0  # bytes that the other side has not taken yet

    def write(self, data: Any) -> None:
        self.heard += bytes(data)
        self.network.heard.append((self.peer[0], bytes(data)))
        self.network.spoken_to.set()
        reply = self.network.answers.get(self.peer[0], OK)
        if callable(reply):
            reply = reply(bytes(data))
        if reply:
            asyncio.get_running_loop().call_soon(self.say, reply)

    def say(self, data: bytes) -> None:
        if not self.is_over:
            self.protocol.data_received(data)

    def get_write_buffer_size(self) -> int:
        return self.unwritten

    def is_closing(self) -> bool:
        return self.is_over

    def abort(self) -> None:
        if not self.is_over:
            self.is_over = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    close = abort


class Network:
    """A `Dialer`. `answers` by address: bytes, a function of the request, or an OSError to raise on dialling."""

    def __init__(self) -> None:
        self.dialed: list[tuple[str, int]] = []
        self.heard: list[tuple[str, bytes]] = []
        self.spoken_to = asyncio.Event()
        self.secured: list[str] = []
        self.answers: dict[str, bytes | OSError | Callable[[bytes], bytes] | asyncio.Event] = {}
        self.peer: tuple[str, int] | None = None  # what getpeername says, where it lies

    async def connect(self, address: str, port: int, protocol: asyncio.BaseProtocol) -> asyncio.Transport:
        self.dialed.append((address, port))
        found = self.answers.get(address)
        if isinstance(found, OSError):
            raise found
        if isinstance(found, asyncio.Event):
            await found.wait()
        transport = MemoryTransport(self, protocol, self.peer or (address, port))
        protocol.connection_made(transport)
        return transport

    async def secure(
        self,
        transport: asyncio.Transport,
        protocol: asyncio.BaseProtocol,
        context: ssl.SSLContext,
        name: str,
        session: ssl.SSLSession | None,
    ) -> asyncio.Transport:
        self.secured.append(name)
        return transport
