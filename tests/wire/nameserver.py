"""A name server on loopback, UDP and TCP, that answers as told."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import struct
from collections.abc import AsyncIterator

A, AAAA, CNAME = 1, 28, 5
NXDOMAIN, SERVFAIL, REFUSED = 3, 2, 5


class NameServer(asyncio.DatagramProtocol):
    """`zone` by name: addresses, a CNAME as `name.`, or a response code. `silent` names, and questions of `silent_kind`, get no answer; answers over 512
    bytes are truncated on UDP. `asked` counts queries by name."""

    def __init__(
        self,
        zone: dict[str, tuple[str, ...] | int],
        *,
        ttl: int = 60,
        silent: frozenset[str] = frozenset(),
        silent_kind: int = 0,
    ) -> None:
        self.zone = zone
        self.ttl = ttl
        self.silent = silent
        self.silent_kind = silent_kind
        self.asked: list[str] = []
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[NameServer]:
        loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._stream, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        datagrams, _ = await loop.create_datagram_endpoint(lambda: self, ("127.0.0.1", self.port))
        try:
            yield self
        finally:
            datagrams.close()
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await server.wait_closed()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.DatagramTransport = transport  # type: ignore[assignment]

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        answer = self._answer(data)
        if answer is not None:
            if len(answer) > 512:
                answer = (
                    answer[:2]
                    + struct.pack("!HHHHH", 0x8780, 1, 0, 0, 0)
                    + data[12 : self._question_end(data)]
                )
            self.transport.sendto(answer, addr)

    async def _stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(2), "big")
                answer = self._answer(await reader.readexactly(size))
                if answer is not None:
                    writer.write(len(answer).to_bytes(2, "big") + answer)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    @staticmethod
    def _question_end(data: bytes) -> int:
        at = 12
        while data[at]:
            at += data[at] + 1
        return at + 5

    def _answer(self, data: bytes) -> bytes | None:
        end = self._question_end(data)
        labels, at = [], 12
        while data[at]:
            labels.append(data[at + 1 : at + 1 + data[at]].decode())
            at += data[at] + 1
        name, kind = ".".join(labels).lower(), int.from_bytes(data[end - 4 : end - 2], "big")
        self.asked.append(name)
        if name in self.silent or kind == self.silent_kind:
            return None
        records: list[bytes] = []
        code = self._gather(name, kind, records)
        head = data[:2] + struct.pack("!HHHHH", 0x8580 | code, 1, len(records), 0, 0)
        return head + data[12:end] + b"".join(records)

    def _gather(self, name: str, kind: int, records: list[bytes], depth: int = 0) -> int:
        found = self.zone.get(name, NXDOMAIN)
        if isinstance(found, int):
            return found
        for text in found:
            if text.endswith("."):
                records.append(self._record(name, CNAME, _encode(text[:-1])))
                if depth < 20:
                    self._gather(text[:-1], kind, records, depth + 1)
                continue
            address = ipaddress.ip_address(text)
            if kind == (A if address.version == 4 else AAAA):
                records.append(self._record(name, kind, address.packed))
        return 0

    def _record(self, name: str, kind: int, data: bytes) -> bytes:
        return _encode(name) + struct.pack("!HHIH", kind, 1, self.ttl, len(data)) + data


def _encode(name: str) -> bytes:
    return b"".join(bytes((len(label),)) + label.encode() for label in name.split(".")) + b"\0"
