"""Cost of TLS for the sender: handshakes in full and gone on from a session, and a thousand https endpoints.

    python -m lab.bench.wire_tls [--seconds 2] [--rounds 2] [--endpoints 1000] [--json]

Handshakes: every answer closes its connection, so a POST is a TCP connection, a handshake and a request. The sink
is a process of its own: its CPU time per POST is what the receiver pays. The two ways take turns.

Endpoints: one POST to each of many hosts, 64 at a time, in a process of its own; printed are the memory and the
descriptors it has more than before, with all connections kept and after they have been idle for too long, for
endpoints with the common authorities and for endpoints with an authority and client certificate each.
Exit status 1 where a bound is broken: 100 KiB an endpoint, or a descriptor left over.
"""

# ruff: noqa: T201 (a program that prints)

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import resource
import ssl
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvloop

from lab.bench.wire import ANSWER, BODY, LINES, Boot, Sink
from surehook.core.model import EndpointTls
from surehook.ports.resolver import Resolved
from surehook.ports.transport import Answer, Request
from surehook.wire.client import WireClient
from surehook.wire.sessions import SessionCache
from surehook.wire.settings import WireSettings
from tests.wire.certificates import Authority

CONCURRENCY = 64
KIB_MAX = 100  # an endpoint, with its connection open
CLOSING = ANSWER.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")


class ClosingSink(Sink):
    """Answers one request a connection."""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if b"\r\n\r\n" in self.buffer and self.buffer.endswith(BODY):
            self.transport.write(CLOSING)
            self.transport.close()


class NoSessions(SessionCache):
    """Every handshake in full."""

    def find(self, key: object, context: ssl.SSLContext) -> None:
        return None


class Everywhere:
    """Every name is this machine."""

    def __init__(self) -> None:
        self._found = Resolved(("127.0.0.1",))

    def cached(self, host: str) -> Resolved | None:
        return self._found

    async def resolve(self, host: str) -> Resolved:
        return self._found

    async def close(self) -> None:
        return


def start_sink(make: Callable[[], asyncio.Protocol], context: ssl.SSLContext) -> tuple[int, int]:
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:

        async def serve() -> None:
            server = await asyncio.get_running_loop().create_server(
                make, "127.0.0.1", 0, ssl=context, backlog=1024
            )
            os.write(writable, str(server.sockets[0].getsockname()[1]).encode())
            await asyncio.Event().wait()

        try:
            uvloop.run(serve())
        finally:
            os._exit(0)
    return child, int(os.read(readable, 16))


def client(**settings: Any) -> WireClient:
    rules = WireSettings(allow_networks=("127.0.0.0/8",), **settings)
    return WireClient(clock=Boot(), resolver=Everywhere(), settings=rules)


async def post_all(wire: WireClient, targets: list[Any], until: float | None = None) -> int:
    """POST to the targets in order, CONCURRENCY at a time: each once, or round and round until then; how many were
    answered 200. Raises where more than one in a hundred was not (a sink that closes may lose an answer)."""
    over, at, running, lost = asyncio.Event(), 0, 0, 0

    def done(answer: Answer) -> None:
        nonlocal running, lost
        lost += answer.status != 200
        running -= 1
        if not send() and running == 0:
            over.set()

    def send() -> bool:
        nonlocal at, running
        if at >= len(targets) if until is None else time.perf_counter() >= until:
            return False
        target = targets[at % len(targets)]
        at += 1
        running += 1
        wire.send(Request(target, LINES, BODY, 30.0, 30.0), done)
        return True

    for _ in range(CONCURRENCY):
        send()
    await over.wait()
    if lost * 100 > at:
        raise RuntimeError(f"{lost} of {at} were not answered")
    return at - lost


def handshakes(port: int, ca: str, seconds: float, *, resume: bool) -> tuple[float, float]:
    """CPU µs of this process per POST, and POST/s."""

    async def run() -> tuple[float, float]:
        wire = client(ca_file=ca)
        if not resume:
            wire.shared.sessions = NoSessions(wire.boot)
        targets = [wire.target(f"https://127.0.0.1:{port}/", tenant="bench")]
        await post_all(wire, targets, time.perf_counter() + 0.2)
        before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        count = await post_all(wire, targets, began + seconds)
        took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
        await wire.close()
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return cpu / count * 1e6, count / took

    return uvloop.run(run())


def measure_handshakes(authority: Authority, options: argparse.Namespace) -> list[dict[str, Any]]:
    found: dict[str, list[tuple[float, float, float]]] = {"full": [], "resumed": []}
    for _ in range(options.rounds):
        for name, rows in found.items():
            child, port = start_sink(ClosingSink, authority.server("127.0.0.1"))
            try:
                cpu_us, per_s = handshakes(port, authority.file, options.seconds, resume=name == "resumed")
            finally:
                os.kill(child, 9)
                used = os.wait4(child, 0)[2]
            posts = per_s * (options.seconds + 0.2)
            rows.append((cpu_us, per_s, (used.ru_utime + used.ru_stime) / posts * 1e6))
    return [
        {
            "handshake": name,
            "cpu_us": round(min(row[0] for row in rows), 1),
            "per_s": round(max(row[1] for row in rows)),
            "sink_cpu_us": round(min(row[2] for row in rows), 1),
        }
        for name, rows in found.items()
    ]


# -- many endpoints --------------------------------------------------------------------------------------


def held() -> tuple[int, int]:
    """KiB of memory and number of descriptors of this process."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 1024, len(os.listdir("/proc/self/fd"))


async def endpoints(port: int, ca: str, number: int, own: list[EndpointTls] | None) -> dict[str, float]:
    wire = client(ca_file=ca)
    warm = wire.stored(
        f"https://warm.company.com:{port}/", tenant="bench", tls=None if own is None else own[0]
    )
    await post_all(wire, [warm])
    memory, descriptors = held()
    targets = [
        wire.stored(
            f"https://host{n}.company.com:{port}/", tenant="bench", tls=None if own is None else own[n]
        )
        for n in range(number)
    ]
    began = time.perf_counter()
    await post_all(wire, targets)
    took = time.perf_counter() - began
    opened = held()
    await asyncio.sleep(wire.shared.settings.idle_s + 1)
    left = held()
    row = {
        "kib_open": opened[0] - memory, "sockets_open": opened[1] - descriptors, "kib_after": left[0] - memory,
        "sockets_after": left[1] - descriptors, "sessions": len(wire.shared.sessions),
        "contexts_kib": wire.shared.contexts.held_kib,
        "seconds": round(took, 2),
    }  # fmt: skip
    await wire.close()
    return row


def measure_endpoints(authority: Authority, number: int, *, with_own: bool) -> dict[str, Any]:
    """In a process of its own, so that memory is that of the endpoints alone."""
    own = None
    if with_own:
        ca = Path(authority.file).read_text()
        pairs = [[Path(file).read_text() for file in authority.issue("sender")] for _ in range(number)]
        own = [EndpointTls(ca, certificate, key) for certificate, key in pairs]
    server = authority.server("*.company.com")
    if with_own:
        server.verify_mode = ssl.CERT_REQUIRED
        server.load_verify_locations(authority.file)
    sink, port = start_sink(Sink, server)
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            row = uvloop.run(endpoints(port, authority.file, number, own))
            os.write(writable, json.dumps(row).encode())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writable)
    os.waitpid(child, 0)
    os.kill(sink, 9)
    os.waitpid(sink, 0)
    return {"tls": "own" if with_own else "common", **json.loads(os.read(readable, 4096))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--endpoints", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8192)), hard))
    with TemporaryDirectory() as folder:
        authority = Authority(Path(folder))
        rows = [
            measure_endpoints(authority, options.endpoints, with_own=with_own) for with_own in (False, True)
        ]
        shakes = measure_handshakes(authority, options)  # last: what it leaves of a loop is no good to a fork
    if options.json:
        print(json.dumps({"handshakes": shakes, "endpoints": rows}))
    else:
        print(
            f"{'handshake':<12}{'CPU µs/POST':>12}{'POST/s':>10}{'receiver CPU':>14}   (a connection for every POST)"
        )
        for row in shakes:
            print(f"{row['handshake']:<12}{row['cpu_us']:>12}{row['per_s']:>10}{row['sink_cpu_us']:>14}")
        print(f"{options.endpoints} https endpoints, a connection each:")
        for row in rows:
            print(
                f"  TLS {row['tls']:<8}+{row['kib_open'] / 1024:.1f} MiB and {row['sockets_open']} descriptors open, "
                f"+{row['kib_after'] / 1024:.1f} MiB and {row['sockets_after']} when idle for too long "
                f"({row['sessions']} sessions, {row['contexts_kib'] / 1024:.1f} MiB of contexts by budget; {row['seconds']} s)"
            )
    worst = max(row["kib_open"] for row in rows) / options.endpoints
    return int(worst > KIB_MAX or any(row["sockets_after"] > 0 for row in rows))


if __name__ == "__main__":
    sys.exit(main())
