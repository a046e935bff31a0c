"""Cost of a POST: CPU microseconds per request at concurrency 64 on kept-alive loopback connections.

    python -m lab.bench.wire [--seconds 2] [--rounds 3] [--only surehook] [--json]

The sink is a process of its own, so the CPU time of this process is the client's alone. The clients take
turns within one run, since absolute figures drift between runs and machines; compare within a run.
aiohttp and pyreqwest are measured where they are installed.
"""

# ruff: noqa: T201 (a program that prints)

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import ssl
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import uvloop

from surehook.ports.resolver import Resolved
from surehook.ports.transport import Answer, Request
from surehook.wire.client import WireClient
from surehook.wire.settings import WireSettings
from tests.wire.certificates import Authority

CONCURRENCY = 64
BODY = b'{"id":"evt_0","type":"document.signed","data":"' + b"x" * 540 + b'"}'
HEADERS = {
    "content-type": "application/json",
    "webhook-id": "evt_06a4d5k2x9v1c3b7n8m0q2w4e6",
    "webhook-timestamp": "1795000000",
    "webhook-signature": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
    "user-agent": "surehook/0.1",
}
LINES = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items()).encode()
ANSWER = b"HTTP/1.1 200 OK\r\ndate: Sat, 21 Nov 2026 11:07:38 GMT\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok"


class Sink(asyncio.Protocol):
    """Answers every request as soon as its body is complete."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer = self.buffer + data if self.buffer else data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            at = head.find(b"content-length:") + 15
            size = end + 4 + int(head[at : head.find(b"\r\n", at) if b"\r\n" in head[at:] else end])
            if len(self.buffer) < size:
                return
            self.buffer = self.buffer[size:]
            self.transport.write(ANSWER)


async def serve(pipe: int, context: ssl.SSLContext | None) -> None:
    server = await asyncio.get_running_loop().create_server(Sink, "127.0.0.1", 0, ssl=context)
    os.write(pipe, str(server.sockets[0].getsockname()[1]).encode())
    await asyncio.Event().wait()


def start_sink(context: ssl.SSLContext | None) -> tuple[int, int]:
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            uvloop.run(serve(writable, context))
        finally:
            os._exit(0)
    port = int(os.read(readable, 16))
    return child, port


class Boot:
    def boot(self) -> float:
        return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class NoNames:
    def cached(self, host: str) -> Resolved | None:
        return None

    async def resolve(self, host: str) -> Resolved:
        return Resolved(failure="dns_nxdomain")

    async def close(self) -> None:
        return


Sender = Callable[[str, float, str | None], Awaitable[int]]


async def by_surehook(url: str, until: float, ca: str | None) -> int:
    wire = WireClient(
        clock=Boot(),
        resolver=NoNames(),
        settings=WireSettings(allow_http=True, allow_networks=("127.0.0.0/8",), ca_file=ca),
    )
    target = wire.target(url, tenant="bench")
    over, count, running = asyncio.Event(), 0, CONCURRENCY

    def done(answer: Answer) -> None:
        nonlocal count, running
        assert answer.status == 200, answer
        count += 1
        if time.perf_counter() < until:
            send()
            return
        running -= 1
        if running == 0:
            over.set()

    def send() -> None:
        wire.send(Request(target, LINES, BODY, 10.0, 5.0), done)

    for _ in range(CONCURRENCY):
        send()
    await over.wait()
    total = count
    await wire.close()
    return total


async def by_aiohttp(url: str, until: float, ca: str | None) -> int:
    import aiohttp

    count = 0
    context = ssl.create_default_context(cafile=ca) if ca else False

    async def loop(session: aiohttp.ClientSession) -> None:
        nonlocal count
        while time.perf_counter() < until:
            async with session.post(url, data=BODY, headers=HEADERS) as answer:
                await answer.read()
            count += 1

    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=CONCURRENCY, ssl=context),
        timeout=aiohttp.ClientTimeout(total=10),
    ) as session:
        await asyncio.gather(*(loop(session) for _ in range(CONCURRENCY)))
    return count


async def by_pyreqwest(url: str, until: float, ca: str | None) -> int:
    from datetime import timedelta

    from pyreqwest.client import ClientBuilder

    count = 0
    builder = ClientBuilder().timeout(timedelta(seconds=10))
    if ca:
        builder = builder.add_root_certificate_pem(Path(ca).read_bytes())  # noqa: ASYNC240 (before the measure)

    async def loop(client: object) -> None:
        nonlocal count
        while time.perf_counter() < until:
            request = client.post(url).body_bytes(BODY).headers(HEADERS).build()  # type: ignore[attr-defined]
            answer = await request.send()
            await answer.bytes()
            count += 1

    async with builder.build() as client:
        await asyncio.gather(*(loop(client) for _ in range(CONCURRENCY)))
    return count


def measure(sender: Sender, url: str, seconds: float, ca: str | None) -> dict[str, float]:
    async def run() -> tuple[int, float, float]:
        await sender(url, time.perf_counter() + 0.3, ca)  # warm-up
        before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        count = await sender(url, began + seconds, ca)
        took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
        return count, took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    count, took, cpu = uvloop.run(run())
    return {"cpu_us": cpu / count * 1e6, "per_s": count / took}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    senders: dict[str, Sender] = {"surehook": by_surehook, "pyreqwest": by_pyreqwest, "aiohttp": by_aiohttp}
    rows = []
    with TemporaryDirectory() as folder:
        authority = Authority(Path(folder))
        ca, server_context = authority.file, authority.server("127.0.0.1")
        for scheme, context in (("http", None), ("https", server_context)):
            child, port = start_sink(context)
            figures: dict[str, list[dict[str, float]]] = {}
            try:
                for _ in range(options.rounds):
                    for name, sender in senders.items():
                        if options.only not in (None, name):
                            continue
                        try:
                            found = measure(
                                sender,
                                f"{scheme}://127.0.0.1:{port}/hook",
                                options.seconds,
                                ca if context else None,
                            )
                        except ImportError:
                            continue
                        figures.setdefault(name, []).append(found)
            finally:
                os.kill(child, 9)
                os.waitpid(child, 0)
            for name, found_all in figures.items():
                middle = {
                    key: statistics.median(found[key] for found in found_all) for key in ("cpu_us", "per_s")
                }
                rows.append(
                    {
                        "client": name,
                        "scheme": scheme,
                        **{key: round(value, 1) for key, value in middle.items()},
                    }
                )
    if options.json:
        print(json.dumps(rows))
        return
    print(
        f"{'client':<12}{'scheme':<8}{'CPU µs/POST':>12}{'POST/s':>10}   (concurrency {CONCURRENCY}, medians)"
    )
    for row in rows:
        print(f"{row['client']:<12}{row['scheme']:<8}{row['cpu_us']:>12}{row['per_s']:>10}")


if __name__ == "__main__":
    main()
