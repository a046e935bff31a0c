"""The generator: a process that publishes events as planned and writes down what was answered when.

Open loop (`rate`): requests are meant for fixed instants, wait for a free connection if there is none,
and are timed from the instant they were meant for. Closed loop: each connection sends its next request
when the last one is answered, which finds the ceiling and says nothing about latency at a given rate.

Started as `python -m lab.bench.load FILE` with a Plan as a line of JSON on stdin; writes a `Sent` in
msgpack to FILE when done. Closing its stdin ends the sending early.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import sys
import time
from array import array
from collections import deque
from collections.abc import Coroutine
from typing import cast

import msgspec

from lab.bench.framing import END, content_length, header
from lab.bench.pace import Pacer
from lab.bench.publisher import Hand, Publisher
from lab.bench.records import Plan, Sent

RECONNECT_S = 0.02  # between two tries to reach a server that is not there
AGAIN_S = 0.05  # before a refused request is posted again, where the plan insists


class Caller(asyncio.Protocol):
    """One connection to the server; at most one request in hand."""

    def __init__(self, generator: Generator) -> None:
        self.generator = generator
        self.buffer = b""
        self.hand: Hand | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.generator.free(self)

    def send(self, hand: Hand) -> None:
        """Put a request on the wire."""
        self.hand = hand
        self.transport.write(hand.request)

    def data_received(self, data: bytes) -> None:
        if self.buffer:
            data = self.buffer + data
        end = data.find(END)
        stop = end + 4 + content_length(data[:end]) if end >= 0 else 0
        if end < 0 or len(data) < stop:
            self.buffer = data
            return
        self.buffer = b""
        if data[9:12] == b"503" and header(data[:end], b"retry-after") is None:
            self.generator.bare_503 += 1
        hand, self.hand = self.hand, None
        if hand is not None:
            self.generator.answered(hand, data[9:12], data[end + 4 : stop])
        self.generator.free(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.generator.dropped(self)


class Generator:
    """Carries out one plan."""

    def __init__(self, plan: Plan) -> None:
        if plan.insist and not plan.own_ids:
            raise ValueError("to insist needs own_ids: a repeat must be the same event")
        self.plan = plan
        self.publisher = Publisher(plan)
        self.loop = asyncio.get_running_loop()
        self.idle: list[Caller] = []
        self.waiting: deque[Hand] = deque()  # bounded by the plan: rate × seconds
        self.open = True  # new requests are made
        self.closing = False  # connections are not made again
        self.in_hand = 0  # requests made and not yet done with
        self.quiet = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()
        self.ids: list[bytes] = []
        self.sent, self.accepted = array("q"), array("q")
        self.lag = array("q")
        self.deliveries = self.attempted = self.refused = self.unanswered = 0
        self.statuses: dict[str, int] = {}
        self.bare_503 = 0
        self.ended_ns = 0

    # -- connections ------------------------------------------------------------------------------

    def free(self, caller: Caller) -> None:
        """A connection can take a request."""
        if self.waiting:
            self.put(caller, self.waiting.popleft())
        elif self.plan.rate is None and self.wants_more():
            self.in_hand += 1
            self.put(caller, self.publisher.hand(time.monotonic_ns()))
        else:
            self.idle.append(caller)

    def put(self, caller: Caller, hand: Hand) -> None:
        """Send a request for the first time or again."""
        if self.plan.rate is not None:
            self.lag.append(time.monotonic_ns() - hand.meant_ns)
        caller.send(hand)

    def dropped(self, caller: Caller) -> None:
        """A connection ended, perhaps with a request in hand."""
        if caller in self.idle:
            self.idle.remove(caller)
        hand, caller.hand = caller.hand, None
        if hand is not None:
            if self.plan.insist and not self.closing:
                self.waiting.appendleft(hand)
            else:
                self.unanswered += hand.count
                self.done()
        if not self.closing:
            self.begin(self.connect())

    async def connect(self) -> None:
        """A connection, however long it takes."""
        while not self.closing:
            with contextlib.suppress(OSError):
                await self.loop.create_connection(lambda: Caller(self), "127.0.0.1", self.plan.port)
                return
            await asyncio.sleep(RECONNECT_S)

    def begin(self, work: Coroutine[object, object, None]) -> None:
        """Run something beside the loop's callbacks, and keep hold of it."""
        task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    # -- requests ---------------------------------------------------------------------------------

    def wants_more(self) -> bool:
        """True while the plan has events left."""
        limit = self.plan.events
        return self.open and (limit is None or self.publisher.made < limit)

    def release(self, instants: list[int]) -> None:
        """Open loop: the requests meant for these instants."""
        for instant in instants:
            if not self.wants_more():
                return
            self.in_hand += 1
            hand = self.publisher.hand(instant)
            if self.idle:
                self.put(self.idle.pop(), hand)
            else:
                self.waiting.append(hand)

    def answered(self, hand: Hand, status: bytes, body: bytes) -> None:
        """A response: note it, or post the request again."""
        name = status.decode("latin-1")
        self.statuses[name] = self.statuses.get(name, 0) + 1
        if status == b"202":
            now = time.monotonic_ns()
            for item in self.publisher.answers(body):
                if item.code is not None or item.id is None:
                    self.refused += 1
                    continue
                self.ids.append(item.id.encode())
                self.sent.append(hand.meant_ns)
                self.accepted.append(now)
                self.deliveries += item.deliveries
        elif self.plan.insist and not self.closing:
            self.loop.call_later(AGAIN_S, self.again, hand)
            return
        else:
            self.refused += hand.count
        self.done()

    def again(self, hand: Hand) -> None:
        """Post a refused request once more."""
        if self.idle:
            self.idle.pop().send(hand)
        else:
            self.waiting.append(hand)

    def done(self) -> None:
        """One request has its end."""
        self.in_hand -= 1
        self.ended_ns = time.monotonic_ns()
        if not self.wants_more() and self.in_hand == 0:
            self.quiet.set()

    # -- the run ----------------------------------------------------------------------------------

    async def run(self, ended: asyncio.Event) -> Sent:
        """Publish until the plan's end or until `ended`, wait for the answers, report."""
        plan, cpu = self.plan, used_cpu()
        started = time.monotonic_ns()
        pacer = self.pacer()
        for _ in range(plan.connections):
            self.begin(self.connect())
        if pacer is not None:
            await asyncio.gather(*self.tasks)  # a fixed rate begins with its connections made
            started = time.monotonic_ns()
            self.loop.add_reader(pacer.fd, lambda: self.release(pacer.due()))
            pacer.begin()
        await self.until_sent(ended)
        self.open = False
        if pacer is not None:
            self.loop.remove_reader(pacer.fd)
            pacer.stop()
        if self.in_hand:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(plan.patience_s):
                    await self.quiet.wait()
        self.unanswered += self.in_hand * self.publisher.per_request
        self.closing = True
        return self.report(started, used_cpu() - cpu)

    def pacer(self) -> Pacer | None:
        """The clock of an open loop."""
        if self.plan.rate is None:
            return None
        requests = self.plan.rate / self.publisher.per_request
        total = int(requests * self.plan.seconds)
        if self.plan.events is not None:
            total = min(total, -(-self.plan.events // self.publisher.per_request))
        return Pacer(requests, max(1, total))

    async def until_sent(self, ended: asyncio.Event) -> None:
        """Until time is up, all events are made and answered, or the starter says stop."""
        waits = [self.loop.create_task(ended.wait()), self.loop.create_task(self.quiet.wait())]
        try:
            async with asyncio.timeout(self.plan.seconds + 0.05):
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            pass
        finally:
            for task in waits:
                task.cancel()

    def report(self, started: int, cpu: float) -> Sent:
        """Log of the run."""
        lag = sorted(self.lag)
        return Sent(
            ids=b"\n".join(self.ids),
            sent=self.sent.tobytes(),
            accepted=self.accepted.tobytes(),
            deliveries=self.deliveries,
            attempted=self.publisher.made,
            refused=self.refused,
            unanswered=self.unanswered,
            statuses=self.statuses,
            bare_503=self.bare_503,
            started_ns=started,
            ended_ns=self.ended_ns or started,
            lag_ms=round(lag[int(len(lag) * 0.95)] / 1e6, 3) if lag else 0.0,
            cpu_us=round(cpu * 1e6 / max(1, self.publisher.made), 1),
        )


def used_cpu() -> float:
    """Seconds of CPU this process has used."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def work(plan: Plan) -> Sent:
    """Carry out a plan; the end of stdin ends it early."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, lambda: ended.set() if not os.read(0, 4096) else None)
    return await Generator(plan).run(ended)


def main() -> None:
    """`python -m lab.bench.load FILE`, a plan on stdin."""
    import pathlib

    import uvloop

    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)  # unbuffered: what follows the line belongs to the loop
        if not byte:
            return
        line += byte
    sent = uvloop.run(work(msgspec.json.decode(line, type=Plan)))
    pathlib.Path(sys.argv[1]).write_bytes(msgspec.msgpack.encode(sent))


if __name__ == "__main__":
    main()
