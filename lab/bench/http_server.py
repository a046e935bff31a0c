"""Cost of a request at the HTTP server: CPU microseconds of its whole process per POST of 600 bytes on 32 kept connections.

    python -m lab.bench.http_server [--seconds 0.7] [--rounds 9] [--only own,uvicorn]

    own       surehook's server
    uvicorn   uvicorn with httptools
    extended  uvicorn's protocol class, extended by no more than counting heads and bodies and keeping lines of who waits
    granian   where it is installed (`pip install granian`)

All run the same trivial ASGI application on uvloop and answer the same generator; they take turns within one run, since
absolute figures drift. The ratio is the median over rounds.
"""

# ruff: noqa: T201 (a program that prints)

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import uvloop

from lab import ROOT

CONNECTIONS = 32
START_S = 15.0
REQUEST = (
    b"POST /v1/events HTTP/1.1\r\nhost: 127.0.0.1:8080\r\nauthorization: Bearer bench-key-0123456789\r\n"
    b"content-type: application/json\r\naccept: */*\r\nuser-agent: surehook/0.1\r\ncontent-length: 600\r\n\r\n"
) + b"x" * 600
ANSWER = b'{"id":"evt_01m7yzjtpaem8asaq2psvckn7k","deliveries":1}'
KINDS = ("uvicorn", "own", "extended", "granian")


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Read the body, answer 202."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message["body"]
        more = message["more_body"]
    assert len(body) == 600
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(ANSWER))]
    await send({"type": "http.response.start", "status": 202, "headers": headers})
    await send({"type": "http.response.body", "body": ANSWER})


# -- servers, each a process of its own ---------------------------------------------------------------------


def serve_own(port: int) -> None:
    from surehook.http_server.bounds import ServerBounds
    from surehook.http_server.connections import Connections
    from surehook.http_server.server import HttpServer

    class Silent:
        def fact(self, name: str, **fields: Any) -> None: ...

    async def run() -> None:
        server = HttpServer(
            app,
            Connections(ServerBounds(), Silent()),
            render=lambda error: (500, [], b""),
            now=lambda: time.time_ns() // 10**6,
        )
        with socket.create_server(("127.0.0.1", port), backlog=1024) as listening:
            listening.setblocking(False)
            time_passes = asyncio.ensure_future(server.pass_time())
            await server.serve([listening])
            time_passes.cancel()

    uvloop.run(run())


def serve_uvicorn(port: int, http: Any = "httptools") -> None:
    import uvicorn

    uvicorn.run(
        app, host="127.0.0.1", port=port, http=http, loop="uvloop", lifespan="off", access_log=False,
        log_config=None, server_header=False, proxy_headers=False, timeout_keep_alive=75, ws="none",
    )  # fmt: skip


def serve_extended(port: int) -> None:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    waiting: dict[Any, int] = {}

    class Bounded(HttpToolsProtocol):
        """A head is fed in pieces that end at its bound; trailers and late bodies would need more."""

        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            self.fed, self.is_head, self.got = 0, True, 0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            transport.set_write_buffer_limits(high=0)
            waiting[self] = 0

        def connection_lost(self, exc: Exception | None) -> None:
            waiting.pop(self, None)
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            at = 0
            while self.is_head and at < len(data):
                piece = data[at : at + 32_768 - self.fed]
                at += len(piece)
                self.fed += len(piece)
                super().data_received(piece)
                if self.is_head and self.fed >= 32_768:
                    self.transport.abort()
                    return
            if at < len(data):
                super().data_received(data[at:])

        def on_headers_complete(self) -> None:
            self.is_head = False
            waiting.pop(self, None)
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self.got += len(body)
            super().on_body(body)

        def on_message_complete(self) -> None:
            self.is_head, self.fed, self.got = True, 0, 0
            super().on_message_complete()

        def on_response_complete(self) -> None:
            waiting[self] = 0
            super().on_response_complete()

    serve_uvicorn(port, Bounded)


SERVERS = {"own": serve_own, "uvicorn": serve_uvicorn, "extended": serve_extended}


def command(kind: str, port: int) -> list[str]:
    if kind != "granian":
        return [sys.executable, "-m", "lab.bench.http_server", "--serve", kind, "--port", str(port)]
    told = (
        "--interface asginl --host 127.0.0.1 --workers 1 --http 1 --loop uvloop --no-ws --log-level warning"
    )
    return [sys.executable, "-m", "granian", *told.split(), "--port", str(port), "lab.bench.http_server:app"]


# -- the generator ------------------------------------------------------------------------------------------


class Connection(asyncio.Protocol):
    done = 0

    def connection_made(self, transport: Any) -> None:
        self.transport, self.seen = transport, b""
        transport.write(REQUEST)

    def data_received(self, data: bytes) -> None:
        self.seen += data
        if self.seen.endswith(ANSWER):
            assert self.seen.startswith(b"HTTP/1.1 202"), self.seen
            Connection.done += 1
            self.seen = b""
            self.transport.write(REQUEST)


def generate(port: int, seconds: float) -> int:
    """Requests that were answered."""

    async def run() -> None:
        for _ in range(CONNECTIONS):
            await asyncio.get_running_loop().create_connection(Connection, "127.0.0.1", port)
        await asyncio.sleep(seconds)

    Connection.done = 0
    uvloop.run(run())
    return Connection.done


def cpu_s(pid: int) -> float:
    """CPU time of a process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ticks = 0
    for each in (pid, *map(int, children)):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(kind: str, seconds: float) -> float:
    """CPU microseconds per request."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    process = subprocess.Popen(command(kind, port), cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        before = cpu_s(process.pid)
        done = generate(port, seconds)
        return (cpu_s(process.pid) - before) / done * 1e6
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=0.7)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--serve", choices=SERVERS, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.serve:
        SERVERS[told.serve](told.port)
        return
    kinds = [
        kind
        for kind in told.only.split(",")
        if kind != "granian" or importlib.util.find_spec("granian") is not None
    ]
    found: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(told.rounds):
        for kind in kinds:
            found[kind].append(measure(kind, told.seconds))
    for kind in kinds:
        ratio = statistics.median(a / b for a, b in zip(found[kind], found[kinds[0]], strict=True))
        print(
            f"{kind:10} {statistics.median(found[kind]):6.1f} µs median, {min(found[kind]):6.1f} least, "
            f"{ratio:.2f} of {kinds[0]}"
        )


if __name__ == "__main__":
    main()
