"""Cost of the hot calls of the SQLite ledger: `python -m lab.bench.ledger [batch …]`.

Three tables. CPU: microseconds of the calling thread per delivery, everything inline, the disk's own CPU
included (and without it: `synchronous=off`, for comparison only). Waiting: milliseconds a call takes on
the writer thread, idle and while the event loop's thread is busy, for two switch intervals. Together:
accepts and records asked for at the same time, as under load, where they share a commit.
"""
# ruff: noqa: T201 (a program that prints)

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator

from surehook.core import ids
from surehook.core.model import Attempt, Delivery, Event, NodeRow, Settled
from surehook.ledgers.sqlite import SqliteLedger
from surehook.ports.ledger import Incoming

NOW = 1_767_225_600_000
ROWS = 12_000  # deliveries per figure
AHEAD = 4  # batches between a delivery's acceptance and its record
BODY = b'{"id":"evt_","type":"document.signed","data":{"text":"%b"}}' % (b"x" * 640)
HEADERS = b"content-type: text/plain\r\ncontent-length: 2\r\nserver: sink\r\n"
ENDPOINTS = [os.urandom(16) for _ in range(50)]


class Book:
    """An open ledger with a node, and batches for it."""

    def __init__(self, folder: str, *, inline: bool) -> None:
        self.ledger = SqliteLedger(os.path.join(folder, "book.db"), inline=inline)
        self.node = os.urandom(16)
        self.version = 1
        self._millis = NOW

    async def open(self, *, lax: bool = False) -> None:
        await self.ledger.open(now=NOW)
        if lax:
            self.ledger._writing.rows("pragma synchronous = off")
        await self.ledger.enter(NodeRow(self.node, "here", "boot", 1, NOW), now=NOW)

    def batches(self, size: int, *, held: bool) -> Iterator[list[Incoming]]:
        for start in range(0, ROWS, size):
            yield [self._incoming(held) for _ in range(min(size, ROWS - start))]

    def _incoming(self, held: bool) -> Incoming:
        chance = os.urandom(16)
        self._millis += chance[0] < 26
        id = ids.uuid7(self._millis, chance)
        event = Event(
            id, "acme", "document.signed", "1", None, None, None, None, None, None, None, self._millis, BODY,
            b"d" * 32, 1,
        )  # fmt: skip
        delivery = Delivery(
            ids.delivery_id(id, chance[10:]), id, ENDPOINTS[chance[1] % 50], "acme", "document.signed", 0, 1,
            self._millis, self._millis, BODY, held=held,
        )  # fmt: skip
        return Incoming(event, [delivery])

    async def accept(self, batch: list[Incoming]) -> None:
        result = await self.ledger.accept(batch, node=self.node, version=self.version, now=NOW)
        assert not result.stale

    async def record(self, settled: list[Settled]) -> None:
        recorded = await self.ledger.record(
            settled, node=self.node, health=(), breakers=(), notices=(), now=NOW
        )
        assert not recorded.lost

    async def claim(self, limit: int) -> None:
        claimed = await self.ledger.claim(0, node=self.node, limit=limit, due_by=NOW * 2, now=NOW)
        assert len(claimed) == limit


def settled(delivery: Delivery) -> Settled:
    entry = Attempt(
        delivery.id, 1, "attempt", 0, NOW, "delivered", False, 200, None, "127.0.0.1", None, None, None, 812,
        930, HEADERS, b"ok",
    )  # fmt: skip
    return Settled(delivery, entry, end="delivered")


async def cpu(size: int, *, lax: bool) -> dict[str, float]:
    """Microseconds of this thread per delivery."""
    spent = dict.fromkeys(("accept", "record", "claim"), 0.0)
    counts = dict.fromkeys(spent, 0)
    with tempfile.TemporaryDirectory() as folder:
        book = Book(folder, inline=True)
        await book.open(lax=lax)

        async def timed(name: str, rows: int, work: object) -> None:
            start = time.thread_time()
            await work  # type: ignore[misc]
            spent[name] += time.thread_time() - start
            counts[name] += rows

        waiting: deque[list[Settled]] = deque()
        for batch in book.batches(size, held=True):
            await timed("accept", len(batch), book.accept(batch))
            waiting.append([settled(item.deliveries[0]) for item in batch])
            if len(waiting) > AHEAD:
                done = waiting.popleft()
                await timed("record", len(done), book.record(done))
        for batch in book.batches(size, held=False):
            await book.accept(batch)
        for _ in range(ROWS // size):
            await timed("claim", size, book.claim(size))
        await book.ledger.close()
    return {name: spent[name] / counts[name] * 1e6 for name in spent}


async def waiting(size: int, *, busy: bool) -> dict[str, float]:
    """Milliseconds a call takes on the writer thread, medians."""
    took: dict[str, list[float]] = {"accept": [], "record": [], "claim": []}
    with tempfile.TemporaryDirectory() as folder:
        book = Book(folder, inline=False)
        await book.open()
        batches = list(book.batches(size, held=True))[:40]
        unheld = list(book.batches(size, held=False))[:40]
        stop = threading.Event()
        hog = threading.Thread(target=spin, args=(stop,))
        if busy:
            hog.start()
        try:
            for batch in batches:
                await timed_ms(took["accept"], book.accept(batch))
                await timed_ms(took["record"], book.record([settled(item.deliveries[0]) for item in batch]))
            for batch in unheld:
                await book.accept(batch)
                await timed_ms(took["claim"], book.claim(len(batch)))
        finally:
            stop.set()
            if busy:
                hog.join()
        await book.ledger.close()
    return {name: sorted(times)[len(times) // 2] for name, times in took.items()}


async def together(size: int) -> dict[str, float]:
    """Microseconds of the whole process per delivery accepted and recorded, and deliveries per second."""
    with tempfile.TemporaryDirectory() as folder:
        book = Book(folder, inline=False)
        await book.open()
        batches = list(book.batches(size, held=True))
        done = [[settled(item.deliveries[0]) for item in batch] for batch in batches]
        await book.accept(batches[0])
        used, start = time.process_time(), time.perf_counter()
        for batch, results in zip(batches[1:], done[:-1], strict=True):
            await asyncio.gather(book.accept(batch), book.record(results))
        used, took = time.process_time() - used, time.perf_counter() - start
        await book.ledger.close()
    rows = ROWS - size
    return {"accept+record": used / rows * 1e6, "thousand/s": rows / took / 1e3}


async def timed_ms(into: list[float], work: object) -> None:
    start = time.perf_counter()
    await work  # type: ignore[misc]
    into.append((time.perf_counter() - start) * 1e3)


def spin(stop: threading.Event) -> None:
    """Keep the interpreter as long as one may, as a busy event loop does to the other threads."""
    number = 0
    while not stop.is_set():
        for _ in range(2_000):
            number = (number * 31 + 7) & 0xFFFF


def show(label: str, figures: dict[str, float]) -> None:
    print(f"  {label:<34}" + "".join(f"{name} {value:7.2f}   " for name, value in figures.items()))


def main(sizes: list[int]) -> None:
    for size in sizes:
        print(f"batches of {size}: µs of CPU per delivery")
        show("durable", asyncio.run(cpu(size, lax=False)))
        show("without waiting for the disk", asyncio.run(cpu(size, lax=True)))
        show("accept and record together", asyncio.run(together(size)))
        print(f"batches of {size}: ms per call on the writer thread")
        before = sys.getswitchinterval()
        show("idle", asyncio.run(waiting(size, busy=False)))
        for interval in (0.005, 0.0005):
            sys.setswitchinterval(interval)
            show(f"busy, switch interval {interval * 1e3:g} ms", asyncio.run(waiting(size, busy=True)))
        sys.setswitchinterval(before)


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [64, 400])
