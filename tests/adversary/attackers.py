"""The attackers: each holds on until its stdin is closed. Started as `python -m tests.adversary.attackers NAME JSON`.

JSON names the server's port, a key, a tenant, and what the attack wants to know besides. An attacker prints `begun`, takes
whatever the server does to it (refusals, resets) and goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

PIECE = 64 * 1024
AGAIN_S = 0.02  # after a connection ended


class Target:
    """Whom to attack, and the bytes most attacks begin with."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.told = told
        self.port: int = told["port"]
        self.authorization = f"authorization: Bearer {told['key']}\r\n".encode()

    def head(self, path: str = "/v1/events", *, key: bool = True, more: bytes = b"") -> bytes:
        """The beginning of a POST, without the empty line that ends its headers."""
        line = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n".encode()
        return line + (self.authorization if key else b"") + more

    def request(self, path: str, body: bytes) -> bytes:
        """A whole request."""
        return self.head(path, more=b"content-length: %d\r\n\r\n" % len(body)) + body

    def event(self, pad: int) -> bytes:
        """One event of the attacker's tenant with so many bytes of data."""
        return b'{"tenant":"%b","type":"document.signed","data":{"pad":"%b"}}' % (
            self.told["tenant"].encode(), b"x" * pad,
        )  # fmt: skip

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)


async def pour(target: Target, begin: bytes, pieces: Iterator[bytes]) -> None:
    """Send a beginning and then pieces for as long as the server takes them."""
    reader, writer = await target.connect()
    try:
        writer.write(begin)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            if reader.at_eof():
                return
    finally:
        writer.close()


async def answer(reader: asyncio.StreamReader) -> bytes:
    """The head of the next answer, whose body is read and thrown away."""
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(int(head.lower().partition(b"\r\ncontent-length:")[2].split(b"\r\n")[0]))
    return head


async def for_ever(work: Callable[[], Awaitable[None]], count: int) -> None:
    """So many at once, each again when it ended."""

    async def one() -> None:
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await work()
            await asyncio.sleep(AGAIN_S)

    await asyncio.gather(*(one() for _ in range(count)))


def endless(piece: bytes, most: int) -> Iterator[bytes]:
    """A piece again and again, up to so many bytes."""
    for _ in range(most // len(piece)):
        yield piece


async def hold(target: Target, begin: bytes, count: int, size: int = 0) -> None:
    """Open so many connections that have said this much, and keep them; those that are ended are made again."""

    async def one() -> None:
        reader, writer = await target.connect()
        try:
            writer.write(begin)
            for piece in endless(b"x" * PIECE, size):
                writer.write(piece)
                await writer.drain()
            while await reader.read(PIECE):
                pass
        finally:
            writer.close()

    await for_ever(one, count)


async def ask(target: Target, request: bytes, connections: int) -> None:
    """Send a request again and again over kept connections, each time when it was answered, whatever the answer is."""

    async def one() -> None:
        reader, writer = await target.connect()
        try:
            while True:
                writer.write(request)
                await writer.drain()
                await answer(reader)
        finally:
            writer.close()

    await for_ever(one, connections)


async def publish(target: Target, path: str, body: bytes, connections: int, times: int | None = None) -> None:
    """Post a body again and again over kept connections."""
    request = target.request(path, body)
    left = [times]

    async def one() -> None:
        reader, writer = await target.connect()
        try:
            while left[0] is None or left[0] > 0:
                if left[0] is not None:
                    left[0] -= 1
                writer.write(request)
                await writer.drain()
                head = await answer(reader)
                if b" 202 " not in head[:16]:
                    await asyncio.sleep(AGAIN_S)
            await asyncio.Event().wait()
        finally:
            writer.close()

    await for_ever(one, connections)


# -- without a key ----------------------------------------------------------------------------------------


async def header_lines(target: Target) -> None:
    """Headers without an end, on eight connections."""
    line = b"".join(b"x-%07d: %b\r\n" % (number, b"y" * 40) for number in range(1000))
    await for_ever(lambda: pour(target, target.head(key=False), endless(line, 60 << 20)), 8)


async def header_value(target: Target) -> None:
    """One header whose value has no end."""
    begin = target.head(key=False, more=b"x-long: ")
    await for_ever(lambda: pour(target, begin, endless(b"y" * PIECE, 60 << 20)), 4)


async def long_url(target: Target) -> None:
    """A request line without an end."""
    await for_ever(lambda: pour(target, b"GET /", endless(b"u" * PIECE, 60 << 20)), 4)


async def trailers(target: Target) -> None:
    """A chunked body whose trailers have no end."""
    begin = target.head(key=False, more=b"transfer-encoding: chunked\r\n\r\n") + b"2\r\n{}\r\n0\r\n"
    line = b"".join(b"x-%07d: %b\r\n" % (number, b"y" * 40) for number in range(1000))
    await for_ever(lambda: pour(target, begin, endless(line, 60 << 20)), 4)


async def half_heads(target: Target) -> None:
    """Thousands of connections that never finish their head."""
    await hold(target, target.head(key=False), target.told["connections"])


async def silent(target: Target) -> None:
    """Thousands of connections that never say anything."""
    await hold(target, b"", target.told["connections"])


async def slow_readers(target: Target) -> None:
    """Callers that ask for pages again and again and read no answer."""
    ask = b"GET /openapi.json HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" * 400

    async def one() -> None:
        reader, writer = await target.connect()
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        try:
            for _ in range(1000):
                writer.write(ask)
                await writer.drain()
        finally:
            writer.close()

    await for_ever(one, 20)


async def tiny_chunks(target: Target) -> None:
    """Bodies in chunks of one byte, from callers without a key and with one."""
    body = b"1\r\n \r\n" * 43_000

    async def crowd(key: bool) -> None:
        begin = target.head(key=key, more=b"transfer-encoding: chunked\r\n\r\n")
        await for_ever(lambda: pour(target, begin, iter([body])), 50)

    await asyncio.gather(crowd(False), crowd(True))


async def pipelined(target: Target) -> None:
    """Requests by the thousand in one write, whose answers are read as they come."""
    ask = b"GET %b HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" % target.told["path"].encode() * 4_000

    async def one() -> None:
        reader, writer = await target.connect()
        try:
            writer.write(ask)
            while await reader.read(PIECE):
                pass
        finally:
            writer.close()

    await for_ever(one, 300)


async def wrong_keys(target: Target) -> None:
    """Requests with a key that nobody has."""
    body = target.event(100)
    head = b"POST /v1/events HTTP/1.1\r\nhost: a\r\nauthorization: Bearer wrong-key-0123456789\r\n"
    request = head + b"content-length: %d\r\n\r\n" % len(body) + body

    async def one() -> None:
        reader, writer = await target.connect()
        try:
            while True:
                writer.write(request)
                await writer.drain()
                await answer(reader)
                await asyncio.sleep(0.1)
        finally:
            writer.close()

    await for_ever(one, 16)


# -- with a key -------------------------------------------------------------------------------------------


async def half_bodies(target: Target) -> None:
    """Large batches of which the last byte never comes."""
    size = 7_900_000
    begin = target.head("/v1/events/batch", more=b"content-length: %d\r\n\r\n" % size)
    await hold(target, begin, target.told["connections"], size - PIECE)


async def batches(target: Target) -> None:
    """Batches as fast as they are taken, from 64 connections."""
    one = target.event(300)
    await publish(target, "/v1/events/batch", b"[" + b",".join([one] * 100) + b"]", 64)


async def broken_batches(target: Target) -> None:
    """Batches as large as they may be, from 64 connections, each broken in its last event."""
    one = target.event(8_000)
    body = b"[" + b",".join([one] * 999) + b"," + one[:-1]
    await publish(target, "/v1/events/batch", body, 64)


async def wide(target: Target) -> None:
    """Batches of events that go to very many endpoints each."""
    one = target.event(300)
    await publish(target, "/v1/events/batch", b"[" + b",".join([one] * target.told["events"]) + b"]", 2)


async def owed(target: Target) -> None:
    """Large events for receivers that are slow to take them, so many and no more."""
    told = target.told
    await publish(target, "/v1/events", target.event(told["pad"]), 8, told["events"])


def json_bytes(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


async def previews(target: Target) -> None:
    """Previews of policies as long as they may be, and of what is none."""
    policy = {"schedule": {"exponential": {"base": 1, "factor": 1.0, "cap": 3600, "retries": 100}}}
    none = {"x": [[[[]]]] * 6_000}
    await asyncio.gather(
        *(
            ask(target, target.request("/v1/policies/preview", json_bytes({"policy": each})), 32)
            for each in (policy, none)
        )
    )


async def refused(target: Target) -> None:
    """Events as large as they may be, of a tenant that there is not."""
    body = target.event(255_000).replace(b'"tenant":"', b'"tenant":"not-')
    await ask(target, target.request("/v1/events", body), 8)


async def nested(target: Target) -> None:
    """Events as large as they may be, nested as deep as they may be."""
    deep = b"[" * 62 + b"]" * 62
    body = target.event(0).replace(b'{"pad":""}', b"[" + b",".join([deep] * 2_000) + b"]")
    await ask(target, target.request("/v1/events", body), 64)


async def scrapes(target: Target) -> None:
    """Scrapes, one after another."""
    await ask(target, target.head("/metrics", more=b"\r\n").replace(b"POST ", b"GET ", 1), 32)


async def schemas(target: Target) -> None:
    """Event types with schemas as large as they may be, changed again and again."""

    async def one(number: int) -> None:
        name = f"loud.t{number}"
        kept = [
            {"properties": {f"k{i}v{version}": {"type": "object", "properties": {"a": {"type": "string"}}} for i in range(3_700)}}
            for version in (1, 2)
        ]  # fmt: skip
        reader, writer = await target.connect()
        try:
            writer.write(target.request("/v1/event-types", json_bytes({"name": name, "schema": {}})))
            await answer(reader)
            while True:
                for schema in kept:
                    request = target.request(f"/v1/event-types/{name}", json_bytes({"schema": schema}))
                    writer.write(request.replace(b"POST ", b"PATCH ", 1))
                    await writer.drain()
                    await answer(reader)
        finally:
            writer.close()

    await asyncio.gather(*(for_ever(lambda number=number: one(number), 1) for number in range(8)))  # type: ignore[misc]


async def judged(target: Target) -> None:
    """Events of many small values, whose schema has them compared."""
    data = json_bytes([[1, number] for number in range(22_000)])
    body = target.event(0).replace(b'{"pad":""}', data).replace(b"document.signed", b"loud.judged")
    await ask(target, target.request("/v1/events", body), 16)


async def hasty(target: Target) -> None:
    """A few events a second, for endpoints that always fail and are asked again at once."""
    request = target.request("/v1/events", target.event(100))
    reader, writer = await target.connect()
    try:
        while True:
            writer.write(request)
            await writer.drain()
            await answer(reader)
            await asyncio.sleep(1 / target.told["rate"])
    finally:
        writer.close()


async def changes(target: Target) -> None:
    """Configuration changes one after another: descriptions, which mean nothing to any delivery."""
    endpoints = target.told["endpoints"]
    reader, writer = await target.connect()
    try:
        number = 0
        while True:
            number += 1
            body = b'{"description":"%d"}' % number
            path = f"/v1/endpoints/{endpoints[number % len(endpoints)]}"
            writer.write(target.request(path, body).replace(b"POST ", b"PATCH ", 1))
            await writer.drain()
            await answer(reader)
    finally:
        writer.close()


async def test_calls(target: Target) -> None:
    """Test calls of endpoints that hang, each from a connection of its own, again as soon as it is answered."""
    endpoints = target.told["endpoints"]

    async def one(number: int) -> None:
        path = f"/v1/endpoints/{endpoints[number % len(endpoints)]}/test"
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await target.connect()
                try:
                    writer.write(target.request(path, b""))
                    await reader.readuntil(b"\r\n\r\n")
                finally:
                    writer.close()
            await asyncio.sleep(1.0)

    await asyncio.gather(*(one(number) for number in range(target.told["connections"])))


ATTACKS = {
    work.__name__: work
    for work in (
        header_lines, header_value, long_url, trailers, half_heads, silent, slow_readers, tiny_chunks, pipelined,
        wrong_keys, half_bodies, batches, broken_batches, wide, owed, hasty, previews, refused, nested, scrapes, schemas, judged, changes,
        test_calls,
    )
}  # fmt: skip


async def main(name: str, told: dict[str, Any]) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, lambda: ended.set() if not os.read(0, 4096) else None)
    work = asyncio.ensure_future(ATTACKS[name](Target(told)))
    print("begun", flush=True)
    waits = [asyncio.ensure_future(ended.wait()), work]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    if work.done():
        work.result()
        raise RuntimeError("the attack ended by itself")
    os._exit(0)  # thousands of connections need not be closed one by one


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
