"""Hostile receivers on real sockets: how long each can hold an attempt, and how many bytes it makes us hold.

    python -m lab hostile [--attempts 20] [--timeout 0.5] [--json]

Every attempt has one deadline; its slot is free when `done` is called. Printed per receiver: the outcomes, the
worst time beyond the deadline (negative: decided earlier), the worst number of response bytes one attempt
held (what its reader keeps and the segment being read; TLS buffers apart). Exit status 1 where an attempt
outlived its deadline by more than 50 ms or held more than 256 KiB.
"""
# ruff: noqa: T201 (a program that prints)

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import uvloop

from surehook.wire.connection import Connection
from tests.wire.answers import answer, chunked
from tests.wire.certificates import Authority
from tests.wire.posting import client, post
from tests.wire.receivers import Drip, Flood, Hang, Hear, Receiver, Reset, Say, Wait

OVER_MAX_S, HELD_MAX = 0.050, 256 * 1024
HEAD = b"HTTP/1.1 200 OK\r\n"
LOOP = answer(b"location: /", b"content-length: 0", start=b"HTTP/1.1 307 T")

RECEIVERS = {
    "accepts and says nothing": (Hang(),),
    "reads and says nothing": (Hear(), Hang()),
    "drips the status line": (Hear(), Drip(b"HTTP/1.1 200 " + b"O" * 99, 0.02)),
    "drips a header": (Hear(), Say(HEAD), Drip(b"x-a: " + b"y" * 999, 0.02)),
    "drips header lines": (Hear(), Say(HEAD), Drip(b"x: y\r\n" * 99, 0.02)),
    "a 103 again and again": (Hear(), *((Say(answer(start=b"HTTP/1.1 103 E")), Wait(0.09)) * 9)),
    "drips a body of known length": (Hear(), Say(answer(b"content-length: 999999")), Drip(b"y" * 999, 0.02)),
    "drips a body until close": (Hear(), Say(answer()), Drip(b"y" * 999, 0.02)),
    "drips chunks": (Hear(), Say(answer(b"transfer-encoding: chunked")), Drip(b"1\r\ny\r\n" * 99, 0.02)),
    "drips trailers": (Hear(), Say(chunked(b"0\r\n")), Drip(b"x: y\r\n" * 99, 0.02)),
    "endless body": (Hear(), Say(answer()), Flood(b"y" * 262_144)),
    "100 GB promised": (Hear(), Say(answer(b"content-length: 100000000000")), Flood(b"y" * 262_144)),
    "endless chunk": (
        Hear(),
        Say(answer(b"transfer-encoding: chunked")),
        Say(b"fffffffffff\r\n"),
        Flood(b"y" * 262_144),
    ),
    "endless tiny chunks": (
        Hear(),
        Say(answer(b"transfer-encoding: chunked")),
        Flood(b"1\r\ny\r\n" * 20_000),
    ),
    "endless chunk extension": (
        Hear(),
        Say(answer(b"transfer-encoding: chunked") + b"1;"),
        Flood(b"y" * 262_144),
    ),
    "endless trailers": (Hear(), Say(chunked(b"0\r\n")), Flood(b"x: y\r\n" * 20_000)),
    "endless header line": (Hear(), Say(HEAD + b"x: "), Flood(b"y" * 262_144)),
    "endless headers": (Hear(), Say(HEAD), Flood(b"x: y\r\n" * 20_000)),
    "endless 1xx": (Hear(), Flood(answer(start=b"HTTP/1.1 100 C") * 9_000)),
    "endless garbage": (Hear(), Flood(b"\x00" * 262_144)),
    "endless line ends": (Hear(), Flood(b"\r\n" * 100_000)),
    "a gzip bomb": (Hear(), Say(answer(b"content-encoding: gzip")), Flood(b"\x1f\x8b" + b"\x00" * 262_142)),
    "talks before it is asked": (Flood(b"y" * 262_144),),
    "answers before it is asked": (Say(answer(b"content-length: 0")), Hang()),
    "answers twice": (Hear(), Say(answer(b"content-length: 0") * 2), Hang()),
    "resets at once": (Reset(),),
    "resets inside the head": (Hear(), Say(HEAD), Reset()),
    "never reads a large body": (Hang(),),
    "redirects to itself": (*((Hear(), Say(LOOP)) * 3), Hang()),
}

TLS_RECEIVERS = {
    "tls: endless body": RECEIVERS["endless body"],
    "tls: drips a body": RECEIVERS["drips a body until close"],
    "tls: reads and says nothing": RECEIVERS["reads and says nothing"],
}
RAW_TLS = {
    "tls: handshake never begins": (Hang(),),
    "tls: handshake is dripped": (Drip(b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76" + b"\x03" * 200, 0.02),),
    "tls: endless handshake": (Flood(b"\x16\x03\x03\x40\x00\x0b\xff\xff\xff" + b"\x00" * 16_379),),
}


class Watched(Connection):
    """Notes the most bytes held by one attempt: kept ones, and the segment just read."""

    worst = 0

    def data_received(self, data: bytes) -> None:
        before = self.reader.held_bytes + len(self._early) + len(data)
        super().data_received(data)
        Watched.worst = max(Watched.worst, before, self.reader.held_bytes + len(self._early))


async def trial(
    name: str,
    script: tuple[object, ...],
    options: argparse.Namespace,
    ca: str | None,
    server: object,
    secure: bool,
) -> dict[str, object]:
    receiver = Receiver(script)  # type: ignore[arg-type]
    Watched.worst, over, outcomes = 0, -10.0, Counter[str]()
    async with receiver.running(ssl=server):
        wire = client(ca_file=ca, connection=Watched)
        url = f"{'https' if secure else 'http'}://127.0.0.1:{receiver.port}/"
        body = b"x" * (20_000_000 if "large" in name else 600)
        loop = asyncio.get_running_loop()

        async def one() -> None:
            nonlocal over
            began = loop.time()
            answer = await post(wire, url, body=body, timeout_s=options.timeout, redirects=2)
            over = max(over, loop.time() - began - options.timeout)
            outcomes[str(answer.failure or answer.status)] += 1

        for _ in range(max(1, options.attempts // 10)):
            await asyncio.gather(*(one() for _ in range(min(10, options.attempts))))
        await wire.close()
    return {
        "receiver": name,
        "outcomes": dict(outcomes),
        "over_ms": round(over * 1000, 1),
        "held": Watched.worst,
    }


async def run(options: argparse.Namespace) -> list[dict[str, object]]:
    with TemporaryDirectory() as folder:
        authority = Authority(Path(folder))
        server = authority.server("127.0.0.1")
        rows = [await trial(name, script, options, None, None, False) for name, script in RECEIVERS.items()]
        for name, script in TLS_RECEIVERS.items():
            rows.append(await trial(name, script, options, authority.file, server, True))
        for name, raw in RAW_TLS.items():
            rows.append(await trial(name, raw, options, authority.file, None, True))
        return rows


def main(args: list[str]) -> int:
    """Print what each receiver did; 1 where a bound was broken."""
    parser = argparse.ArgumentParser(prog="python -m lab hostile", description=__doc__)
    parser.add_argument("--attempts", type=int, default=20)
    parser.add_argument("--timeout", type=float, default=0.5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(args)
    rows = uvloop.run(run(options))
    over = max(float(str(row["over_ms"])) for row in rows)
    held = max(int(str(row["held"])) for row in rows)
    if options.json:
        print(json.dumps({"over_ms": over, "held_bytes": held, "receivers": rows}))
    else:
        print(f"{'receiver':<32}{'over deadline':>15}{'bytes held':>12}  outcomes")
        for row in rows:
            print(f"{row['receiver']:<32}{row['over_ms']:>12} ms{row['held']:>12}  {row['outcomes']}")
        print(f"worst: {over} ms over the deadline, {held:,} bytes held by one attempt")
    return int(over > OVER_MAX_S * 1000 or held > HELD_MAX)
