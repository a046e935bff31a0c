"""The network to the application: requests get lost, arrive twice or late, and answers do not come back.

It fails all the time where a network fails now and then, so that half a minute shows what takes a year. It runs in the
process of the receivers, outlives the application, and remembers what it passed on and what the application answered.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from msgspec import Struct

from surehook.demo.receiver import HttpReply, HttpRequest, Written

CARRY_S = 10.0  # for one request there and its answer back: far above what the sender waits for
ANSWER_BYTES_MAX = 64 * 1024

BAD_GATEWAY = HttpReply(502)  # nothing listens there, or it went away in the middle


class Road(Struct, frozen=True):
    """Fractions of requests, 0 to 1, and the range of seconds that one is held back."""

    loses: float  # never arrive
    forgets: float  # arrive, and the answer is lost
    repeats: float  # arrive twice at the same time
    holds: float  # arrive late, behind those that were sent after them
    hold_s: tuple[float, float]


class Way:
    """A road to `host`:`port`. `arrived` is called with each request that gets there, `answered` with each answer."""

    def __init__(
        self,
        road: Road,
        host: str,
        port: int,
        *,
        arrived: Callable[[HttpRequest], object],
        answered: Written,
        rng: random.Random,
    ) -> None:
        self._road = road
        self._place = (host, port)
        self._rng = rng
        self._arrived = arrived
        self._answered = answered

    async def carry(self, request: HttpRequest) -> HttpReply:
        """Carry one request there, if it gets that far; returns the reply that comes back."""
        road, drawn = self._road, self._rng.random()
        if drawn < road.loses:
            return HttpReply(None)
        if drawn < road.loses + road.forgets:
            await self._hand_over(request)
            return HttpReply(None)
        if drawn < road.loses + road.forgets + road.repeats:
            first, _ = await asyncio.gather(self._hand_over(request), self._hand_over(request))
            return first
        if drawn < road.loses + road.forgets + road.repeats + road.holds:
            await asyncio.sleep(self._rng.uniform(*road.hold_s))
        return await self._hand_over(request)

    async def _hand_over(self, request: HttpRequest) -> HttpReply:
        try:
            async with asyncio.timeout(CARRY_S):
                reader, writer = await asyncio.open_connection(*self._place)
                self._arrived(request)
                try:
                    writer.write(_render(request))
                    raw = await reader.read(ANSWER_BYTES_MAX)
                    while more := await reader.read(ANSWER_BYTES_MAX - len(raw)):
                        raw += more
                finally:
                    writer.close()
            reply = _parse(raw)
        except (OSError, TimeoutError, ValueError):
            return BAD_GATEWAY
        self._answered(request, reply)
        return reply


def _render(request: HttpRequest) -> bytes:
    kept = [(name, value) for name, value in request.headers if name.lower() != "connection"]
    lines = [f"{name}: {value}" for name, value in (*kept, ("connection", "close"))]
    head = "\r\n".join([f"{request.method} {request.path} HTTP/1.1", *lines, "", ""])
    return head.encode("latin-1") + request.body


def _parse(raw: bytes) -> HttpReply:
    """Raises ValueError for an answer that breaks off."""
    head, end, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    if not end or len(body) != int(headers.get("content-length", 0)):
        raise ValueError("the answer broke off")
    return HttpReply(int(first.split(" ")[1]), body, headers.get("content-type", "application/json"))
