"""The receiver: a process that answers as its path says and writes down when each delivery came.

    /ok             200 at once               /d/MS       200 after MS milliseconds
    /hang           never an answer           /status/N   status N at once
    /flaky/P        500 with chance P         /once/N     status N to a delivery's first request, then 200
    /late           503 until the instant set by POST /due, with `Retry-After` to it, then 200

Anything may follow after a further slash (`/hang/17`), so that one behaviour serves many endpoints.
Control: GET /count, GET /report (msgpack), POST /reset, POST /due with nanoseconds of the monotonic
clock as its body. A closed port needs no receiver.

A request of the cheap path is three searches in its head, one set and four appends.
Started as `python -m lab.bench.sink`: prints its port, ends when its stdin does.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import resource
import sys
import time
from array import array
from collections.abc import Callable
from typing import cast

import msgspec

from lab.bench.framing import END, content_length, header
from lab.bench.records import Arrivals, Count

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
BACKLOG = 4096  # connections waiting to be taken: a start of thousands of endpoints at once
NO_ID = b"-"
DELIVERY, EVENT, LENGTH = b"\r\nwebhook-delivery-id: ", b"\r\nwebhook-id: ", b"\r\ncontent-length: "


def value(head: bytes, mark: bytes) -> bytes | None:
    """A header's value where it is spelled as usual, else by the slower search."""
    at = head.find(mark)
    if at < 0:
        return header(head, mark[2:-2])
    at += len(mark)
    stop = head.find(b"\r\n", at)
    return head[at:stop] if stop >= 0 else head[at:]


def respond(status: int, body: bytes = b"", extra: bytes = b"") -> bytes:
    """A whole response."""
    return b"HTTP/1.1 %d -\r\n%bcontent-length: %d\r\n\r\n%b" % (status, extra, len(body), body)


class Book:
    """State of the receiver. One per process."""

    def __init__(self) -> None:
        self.dice = random.Random(7)  # chance of /flaky, the same in every run
        self.routes: dict[bytes, tuple[int, str, float]] = {}  # path -> number, behaviour, its figure
        self.paths: list[str] = []
        self.hits: list[int] = []  # requests by path
        self.due_ns = 0
        self.connections = 0
        self.clear()

    def clear(self) -> None:
        """Forget all arrivals; paths keep their numbers."""
        self.deliveries: list[bytes] = []
        self.events: list[bytes] = []
        self.at = array("q")
        self.path = array("H")
        self.answered: set[bytes] = set()
        self.seen: set[bytes] = set()  # for /once
        self.hits = [0] * len(self.paths)
        self.duplicated = 0
        self.cpu_at = used_cpu()

    def route(self, target: bytes) -> tuple[int, str, float]:
        """Number, behaviour and figure of a request target; unknown ones are behaviour `none`."""
        path = target.decode("latin-1").split("?", 1)[0]
        kind, _, rest = path[1:].partition("/")
        figure = rest.split("/", 1)[0]
        if kind not in BEHAVIOURS:
            kind = "none"
        needs_figure = kind in ("d", "status", "flaky", "once")
        found = (len(self.paths), kind, float(figure) if needs_figure else 0.0)
        self.paths.append(path)
        self.hits.append(0)
        self.routes[target] = found
        return found

    def count(self) -> Count:
        """The totals so far."""
        return Count(
            requests=len(self.at),
            answered=len(self.answered),
            duplicated=self.duplicated,
            last_ns=self.at[-1] if self.at else 0,
            connections=self.connections,
            by_path=dict(zip(self.paths, self.hits, strict=True)),
        )

    def report(self) -> Arrivals:
        """Everything since the last reset."""
        spent = (used_cpu() - self.cpu_at) * 1e6 / max(1, len(self.at))
        return Arrivals(
            paths=self.paths,
            deliveries=b"\n".join(self.deliveries),
            events=b"\n".join(self.events),
            at=self.at.tobytes(),
            path=self.path.tobytes(),
            answered=len(self.answered),
            unanswered=b"\n".join(set(self.deliveries) - self.answered),
            duplicated=self.duplicated,
            cpu_us=round(spent, 1),
        )


def used_cpu() -> float:
    """Seconds of CPU this process has used."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class Receiver(asyncio.Protocol):
    """One connection of a sender."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.book.connections += 1

    def connection_lost(self, error: Exception | None) -> None:
        self.book.connections -= 1

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        if self.buffer:
            data = self.buffer + data
        while data:
            end = data.find(END)
            if end < 0:
                break
            head = data[:end]
            length = value(head, LENGTH)
            stop = end + 4 + (int(length) if length is not None else content_length(head))
            if len(data) < stop:
                break
            if data.startswith(b"POST /"):
                self.deliver(head, data[end + 4 : stop], now)
            else:
                self.ask(head)
            data = data[stop:]
        self.buffer = data

    def deliver(self, head: bytes, body: bytes, now: int) -> None:
        """One POST: a delivery, or a word to the sink itself."""
        book = self.book
        target = head[5 : head.find(b" ", 5)]
        route = book.routes.get(target)
        if route is None:
            if target in CONTROLS:
                CONTROLS[target](book, body)
                self.transport.write(OK)
                return
            route = book.route(target)
        delivery = value(head, DELIVERY) or NO_ID
        book.at.append(now)
        book.path.append(route[0])
        book.hits[route[0]] += 1
        book.deliveries.append(delivery)
        book.events.append(value(head, EVENT) or NO_ID)
        if delivery in book.answered:
            book.duplicated += 1
        if route[1] == "ok":
            self.succeed(delivery)
        else:
            BEHAVIOURS[route[1]](self, delivery, route[2], now)

    def succeed(self, delivery: bytes) -> None:
        """Answer 200, unless the sender has gone."""
        if not self.transport.is_closing():
            self.book.answered.add(delivery)
            self.transport.write(OK)

    def ask(self, head: bytes) -> None:
        """One GET: the sink's own figures."""
        target = head.split(b" ", 2)[1]
        if target == b"/count":
            body = msgspec.json.encode(self.book.count())
        elif target == b"/report":
            body = msgspec.msgpack.encode(self.book.report())
        else:
            self.transport.write(NOT_FOUND)
            return
        self.transport.write(respond(200, body))


Behaviour = Callable[[Receiver, bytes, float, int], None]


def after(receiver: Receiver, delivery: bytes, milliseconds: float, _now: int) -> None:
    """200 after a while."""
    asyncio.get_running_loop().call_later(milliseconds / 1000, receiver.succeed, delivery)


def never(_receiver: Receiver, _delivery: bytes, _figure: float, _now: int) -> None:
    """No answer; the sender's patience ends it."""


def status(receiver: Receiver, delivery: bytes, figure: float, _now: int) -> None:
    """A fixed status."""
    if 200 <= figure < 300:
        receiver.book.answered.add(delivery)
    receiver.transport.write(respond(int(figure)))


def flaky(receiver: Receiver, delivery: bytes, chance: float, _now: int) -> None:
    """500 with a chance, else 200."""
    if receiver.book.dice.random() < chance:
        receiver.transport.write(respond(500))
    else:
        receiver.succeed(delivery)


def once(receiver: Receiver, delivery: bytes, figure: float, _now: int) -> None:
    """A failure for the first request of a delivery, 200 for the others."""
    seen = receiver.book.seen
    if delivery in seen:
        receiver.succeed(delivery)
    else:
        seen.add(delivery)
        receiver.transport.write(respond(int(figure)))


def late(receiver: Receiver, delivery: bytes, _figure: float, now: int) -> None:
    """503 until the set instant; `Retry-After` leads all senders to the same second."""
    wait = receiver.book.due_ns - now
    if wait <= 0:
        receiver.succeed(delivery)
    else:
        receiver.transport.write(respond(503, extra=b"retry-after: %d\r\n" % math.ceil(wait / 1e9)))


def none(receiver: Receiver, _delivery: bytes, _figure: float, _now: int) -> None:
    """404: a path that means nothing here."""
    receiver.transport.write(NOT_FOUND)


BEHAVIOURS: dict[str, Behaviour] = {
    "ok": lambda receiver, delivery, _figure, _now: receiver.succeed(delivery),
    "d": after,
    "hang": never,
    "status": status,
    "flaky": flaky,
    "once": once,
    "late": late,
    "none": none,
}


def set_due(book: Book, body: bytes) -> None:
    """POST /due."""
    book.due_ns = int(body)


CONTROLS: dict[bytes, Callable[[Book, bytes], None]] = {
    b"/reset": lambda book, _body: book.clear(),
    b"/due": set_due,
}


async def serve(port: int) -> None:
    """Listen on `port` (0: any free one), say which, and stay until stdin ends."""
    loop = asyncio.get_running_loop()
    book, ended = Book(), asyncio.Event()
    server = await loop.create_server(lambda: Receiver(book), "127.0.0.1", port, backlog=BACKLOG)
    try:
        os.write(1, b"%d\n" % server.sockets[0].getsockname()[1])
    except BrokenPipeError:  # who began it is gone already
        server.close()
        return
    loop.add_reader(0, lambda: ended.set() if not os.read(0, 4096) else None)
    await ended.wait()
    server.close()


def main() -> None:
    """`python -m lab.bench.sink [PORT]`."""
    import uvloop

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    uvloop.run(serve(int(sys.argv[1]) if len(sys.argv) > 1 else 0))


if __name__ == "__main__":
    main()
