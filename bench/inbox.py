"""Durable accepts of the inbox beside a plain FastAPI handler that commits each request by itself, and processing.

    python bench/inbox.py [--seconds 5] [--databases sqlite,postgresql] [--connections 64]

Both receivers verify the same signed messages, store them under a unique key on the same durable database, and answer after
the commit, each as one uvicorn process; the load comes from this process over kept-alive connections. They take turns on
fresh databases. "processed" is what one worker does with what was accepted: a workflow, one handler that writes a row.
"""
# ruff: noqa: T201 (a program that prints)

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from fastapi import FastAPI, Request, Response  # noqa: E402
from sqlalchemy import text  # noqa: E402
from sqlalchemy.exc import IntegrityError  # noqa: E402
from tests import servers  # noqa: E402
from tests.inbox.house import SECRET, partner  # noqa: E402
from tests.inbox.programs.table import STORY, TABLE  # noqa: E402

from surehook.inbox import AsyncInbox, Inbox  # noqa: E402
from surehook.inbox.sql import engines  # noqa: E402
from surehook.verify import sign, verify  # noqa: E402

FIRST_PORT, LAST_PORT = 23_860, 23_990
MESSAGES_MAX = 60_000  # signed before the clock starts
START_S = 20.0
PADDING = "x" * 800  # a body of about 1 KB
PLAIN = "create table plain (event_id varchar(255) primary key, body {blob} not null, headers text not null)"
EFFECTS = "create table effects (event_id varchar(255) not null, state varchar(64))"


def inbox_on(url: str) -> Any:
    """The inbox as an application would have it: blocking on SQLite, asynchronous elsewhere."""
    inbox: Any = (Inbox if url.startswith("sqlite") else AsyncInbox)(url, [partner()])
    inbox.follow(TABLE, "partner", "document.*")
    insert = text("insert into effects (event_id, state) values (:id, :state)")

    def blocking(event: Any, tx: Any) -> None:
        tx.execute(insert, {"id": event.id, "state": event.change.after})

    async def waiting(event: Any, tx: Any) -> None:
        await tx.execute(insert, {"id": event.id, "state": event.change.after})

    inbox.on("partner", "document.*")(blocking if isinstance(inbox, Inbox) else waiting)
    return inbox


def plain_app(url: str) -> Any:
    """A handler as one writes it: verify, insert, commit, answer."""
    app = FastAPI()
    insert = text("insert into plain (event_id, body, headers) values (:id, :body, :headers)")

    def row(request: Request, body: bytes) -> dict[str, Any]:
        message = verify("standard", body, request.headers, SECRET)
        return {"id": message.id, "body": body, "headers": json.dumps(dict(request.headers))}

    if url.startswith("sqlite"):
        engine = engines.engine(url)

        def store(values: dict[str, Any]) -> None:
            with contextlib.suppress(IntegrityError), engine.begin() as connection:
                connection.execute(insert, values)

        @app.post("/hooks/partner")
        async def hook(request: Request) -> Response:
            values = row(request, await request.body())
            await asyncio.get_running_loop().run_in_executor(None, store, values)
            return Response()

    else:
        waiting = engines.async_engine(url)

        @app.post("/hooks/partner")
        async def hook(request: Request) -> Response:
            values = row(request, await request.body())
            with contextlib.suppress(IntegrityError):
                async with waiting.begin() as connection:
                    await connection.execute(insert, values)
            return Response()

    return app


def serve(kind: str, url: str, port: int) -> None:
    """Be one of the two receivers."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.routing import Mount

    app: Any = (
        plain_app(url) if kind == "plain" else Starlette(routes=[Mount("/hooks", inbox_on(url).asgi())])
    )
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)


def requests(count: int, prefix: str) -> list[bytes]:
    """Signed requests, ready to be sent: documents of four events each."""
    made = []
    for n in range(count):
        kind = STORY[n % len(STORY)]
        data = {
            "type": kind,
            "document": f"{prefix}-{n // len(STORY)}",
            "n": n % len(STORY) + 1,
            "padding": PADDING,
        }
        body = json.dumps(data).encode()
        headers = "".join(
            f"{name}: {value}\r\n" for name, value in sign(SECRET, f"{prefix}_{n}", body).items()
        )
        head = f"POST /hooks/partner HTTP/1.1\r\nhost: bench\r\n{headers}content-length: {len(body)}\r\n\r\n"
        made.append(head.encode() + body)
    return made


class Caller(asyncio.Protocol):
    """One connection that sends the next request when the last was answered."""

    def __init__(self, line: Iterator[bytes], tally: dict[str, int]) -> None:
        self._line, self._tally, self._said = line, tally, b""
        self.over = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self._wire = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        self._said += data
        if b"\r\n\r\n" not in self._said:
            return
        word = "accepted" if self._said.startswith(b"HTTP/1.1 200") else "refused"
        self._tally[word] += 1
        self._said = b""
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.over.done():
            self.over.set_result(None)

    def _next(self) -> None:
        request = next(self._line, None)
        if request is None:
            self._wire.close()
        else:
            self._wire.write(request)


async def load(port: int, made: list[bytes], seconds: float, connections: int) -> float:
    """Accepted per second."""
    end = time.monotonic() + seconds

    def line() -> Iterator[bytes]:
        for one in made:
            if time.monotonic() >= end:
                return
            yield one

    shared, tally = line(), {"accepted": 0, "refused": 0}
    loop, began = asyncio.get_running_loop(), time.monotonic()
    pairs = [
        await loop.create_connection(lambda: Caller(shared, tally), "127.0.0.1", port)
        for _ in range(connections)
    ]
    await asyncio.gather(*(caller.over for _, caller in pairs))
    took = time.monotonic() - began
    if tally["refused"]:
        raise SystemExit(f"{tally['refused']} requests were refused")
    return tally["accepted"] / took


@contextlib.contextmanager
def receiver(kind: str, url: str, port: int) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, __file__, "--serve", kind, url, str(port)])
    try:
        end = time.monotonic() + START_S
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if time.monotonic() > end or process.poll() is not None:
                raise SystemExit("the receiver did not start")
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait()


def prepare(url: str) -> None:
    inbox = Inbox(url)
    inbox.create_tables()
    blob = "blob" if url.startswith("sqlite") else "bytea"
    with inbox.store.engine.begin() as connection:
        connection.execute(text(PLAIN.format(blob=blob)))
        connection.execute(text(EFFECTS))
    inbox.close()


async def processed(url: str) -> float:
    """Events per second that one worker processes of what was accepted."""
    inbox = inbox_on(url)
    began = time.monotonic()
    if isinstance(inbox, Inbox):
        inbox.work()
        took, counts = time.monotonic() - began, inbox.counts()
        inbox.close()
    else:
        await inbox.work()
        took, counts = time.monotonic() - began, await inbox.counts()
        await inbox.close()
    return counts["partner"].get("finalized", 0) / took


@contextlib.contextmanager
def database(name: str) -> Iterator[str]:
    if name == "sqlite":
        with tempfile.TemporaryDirectory(dir=ROOT / "bench") as folder:
            yield f"sqlite:///{folder}/inbox.db"
        return
    server = servers.Postgres.new(durable=True)
    try:
        with server.database() as url:
            yield url
    finally:
        server.close()


def measure(name: str, seconds: float, connections: int) -> dict[str, Any]:
    port = FIRST_PORT + os.getpid() % (LAST_PORT - FIRST_PORT)
    found: dict[str, Any] = {"database": name}
    with database(name) as url:
        prepare(url)
        for kind in ("plain", "inbox"):
            made = requests(min(int(seconds * (3_000 if kind == "plain" else 10_000)), MESSAGES_MAX), kind)
            with receiver(kind, url, port):
                found[kind] = round(asyncio.run(load(port, made, seconds, connections)))
        found["ratio"] = round(found["inbox"] / found["plain"], 1)
        found["processed"] = round(asyncio.run(processed(url)))
        found["processed_ratio"] = round(found["processed"] / found["inbox"], 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="of load for each receiver")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--databases", default="sqlite,postgresql")
    parser.add_argument("--serve", nargs=3, metavar=("KIND", "URL", "PORT"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        kind, url, port = given.serve
        serve(kind, url, int(port))
        return
    for name in given.databases.split(","):
        print(json.dumps(measure(name, given.seconds, given.connections)))


if __name__ == "__main__":
    main()
