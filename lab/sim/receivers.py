"""Modelled customers: HTTP receivers with moods, and a true record of every request that reached them.

A receiver's `Mood` says how it treats connections and requests now; a world changes moods over time.
What it saw (`Seen`) is the ground truth that the ledger's word is checked against: it is written down when
the last byte of a request has arrived, before anything is answered, because that is the moment at which a
real receiver may act on it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Callable

from msgspec import Struct

from lab.sim.http import Incoming, Malformed, Parser, answer
from lab.sim.loop import Process, SimLoop
from lab.sim.network import Link, SimTransport

# How a request can be treated. `flaky` draws one of FLAWS for each request that it does not treat well.
TREATMENTS = (
    "healthy", "slow", "hanging", "flaky", "throttling", "gone", "dripping", "verdict", "key", "errors",
    "redirect", "deaf", "refused", "unreachable", "blackhole",
)  # fmt: skip
IDLE_S = 5.0  # a connection without a request is closed, as by common servers; who froze finds it so
FLAWS = ("500", "503", "503-later", "404", "408", "hang", "reset", "eof", "half", "garbage", "late", "hints")


class Mood(Struct, frozen=True):
    """Behaviour of a receiver: `treatment` with its numbers."""

    treatment: str = "healthy"
    answer_s: tuple[float, float] = (0.001, 0.030)  # until it answers, drawn per request
    flaw_share: float = 0.3  # of requests treated badly while `flaky`
    per_second: int = 20  # requests it lets through while `throttling`
    retry_after: str = "2"  # as `throttling` says it
    reset_share: float = 0.0  # of connections that are reset at a random byte
    silent_share: float = 0.0  # of connections that go half-open at a random byte
    connect_s: float = 0.01  # a connection takes up to this long
    secure_s: float = 0.0  # … and its handshake up to so much longer than usual
    pieces: bool = False  # its connection cuts bytes into pieces


class Seen(Struct):
    """One complete request as it arrived, and what became of it."""

    at: float  # loop seconds
    receiver: str
    sender: str  # name of the process that wrote it
    wrote_at: float  # loop seconds at which it was written
    wrote_wall: int  # the writer's wall clock then
    wrote_step: int  # … and the step of the loop
    path: str
    event: str
    delivery: str
    attempt: int
    retry_count: int
    replay: bool
    stamp: int  # webhook-timestamp
    digest: str  # SHA-256 of the body
    genuine: bool  # its signature verifies
    treated: str  # what the receiver decided to do
    answered: int | None = None  # status, when the answer was written
    answered_at: float | None = None

    def shows_life(self, by: float) -> bool:
        """True where the receiver had answered by loop time `by`, in a way that closes a breaker."""
        if self.answered is None or self.answered_at is None or self.answered_at > by:
            return False
        return self.answered < 500 and self.answered != 429


class Receiver:
    """One customer at one host name. `verify(headers, body, now_s)` tells whether a signature is genuine."""

    def __init__(
        self,
        name: str,
        loop: SimLoop,
        chance: random.Random,
        *,
        mood: Mood | None = None,
        verify: Callable[[dict[str, str], bytes, float], bool] = lambda headers, body, now: True,
        tell: Callable[[Seen], None] = lambda seen: None,
    ) -> None:
        self.name = name
        self.mood = mood or Mood()
        self.seen: list[Seen] = []
        self.findings: list[str] = []
        self.open = 0  # connections
        self.verify = verify
        self.tell = tell
        self._loop = loop
        self._chance = chance
        self._second = (-1, 0)  # the current second and how many requests were let through in it

    # -- as a listener -----------------------------------------------------------------------------

    def link(self) -> Link:
        mood, chance = self.mood, self._chance
        connect = mood.treatment if mood.treatment in ("refused", "unreachable", "blackhole") else "open"
        link = Link(
            connect=connect, connect_s=0.0005 + mood.connect_s * chance.random(), whole=not mood.pieces
        )
        if mood.secure_s:
            link.secure_s = mood.secure_s * chance.random()
        if chance.random() < mood.reset_share:
            link.reset_after = chance.randint(0, 2_500)
        elif chance.random() < mood.silent_share:
            link.silent_after = chance.randint(0, 2_500)
        return link

    def owner(self) -> Process | None:
        return None

    def accept(self) -> asyncio.Protocol:
        return Conversation(self)

    # -- as a customer -----------------------------------------------------------------------------

    def arrived(self, request: Incoming, sender: SimTransport) -> Seen:
        """Write the request down, and decide what to do about it."""
        headers = request.headers
        try:
            seen = Seen(
                at=self._loop.time(),
                receiver=self.name,
                sender=sender.process.name if sender.process is not None else "world",
                wrote_at=sender.wrote_at,
                wrote_wall=sender.wrote_wall,
                wrote_step=sender.wrote_step,
                path=request.path,
                event=headers["webhook-id"],
                delivery=headers["webhook-delivery-id"],
                attempt=int(headers["webhook-attempt"]),
                retry_count=int(headers["webhook-retry-count"]),
                replay=headers.get("webhook-replay") == "1",
                stamp=int(headers["webhook-timestamp"]),
                digest=hashlib.sha256(request.body).hexdigest(),
                genuine=self.verify(headers, request.body, self._loop.time()),
                treated=self._treatment(),
            )
            if json.loads(request.body)["id"] != seen.event:
                self.findings.append(f"webhook-id {seen.event} is not the id in the body")
        except (KeyError, ValueError) as error:
            self.findings.append(f"a request lacks its metadata: {error!r}")
            raise Malformed(str(error)) from error
        if not seen.genuine:
            self.findings.append(f"the signature of {seen.delivery} attempt {seen.attempt} does not verify")
        self.seen.append(seen)
        self.tell(seen)
        return seen

    def _treatment(self) -> str:
        mood = self.mood
        if mood.treatment == "flaky":
            return self._chance.choice(FLAWS) if self._chance.random() < mood.flaw_share else "healthy"
        if mood.treatment == "throttling":
            second = int(self._loop.time())
            passed = self._second[1] if self._second[0] == second else 0
            self._second = (second, passed + 1)
            return "healthy" if passed < mood.per_second else "throttling"
        return mood.treatment

    def answer_s(self) -> float:
        low, high = self.mood.answer_s
        return low + (high - low) * self._chance.random()

    @property
    def retry_after(self) -> str:
        return self.mood.retry_after


class Conversation(asyncio.Protocol):
    """One connection from the receiver's side."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._parser = Parser()
        self._transport: SimTransport | None = None
        self._deaf = False  # it missed something, so it understands nothing any more
        self._idle: asyncio.TimerHandle | None = None  # closes it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, SimTransport)
        self._transport = transport
        self._receiver.open += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._receiver.open -= 1
        self._asked()

    def _asked(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def data_received(self, data: bytes) -> None:
        self._asked()
        transport = self._transport
        self._deaf = self._deaf or self._receiver.mood.treatment == "deaf"
        if transport is None or self._deaf:
            return
        try:
            request = self._parser.feed(data)
            if request is None:
                return
            seen = self._receiver.arrived(request, transport.peer)
        except Malformed as error:
            self._receiver.findings.append(f"malformed request at {self._receiver.name}: {error}")
            transport.abort()
            return
        self._treat(seen, request, transport)

    def _treat(self, seen: Seen, request: Incoming, transport: SimTransport) -> None:
        """Do what was decided when the request had arrived."""
        loop = self._receiver._loop
        delay = self._receiver.answer_s()
        if seen.treated == "reset":
            loop.call_later(delay, transport.abort)
        elif seen.treated == "eof":
            loop.call_later(delay, transport.close)
        elif seen.treated == "dripping":
            loop.call_later(0.3, self._drip, seen, answer(200, body=b"x" * 200), 0)
        elif seen.treated not in ("hanging", "hang"):
            loop.call_later(delay, self._answer, seen)

    def _answer(self, seen: Seen) -> None:
        if self._transport is None:
            return
        status, raw = _words(seen.treated, self._receiver)
        seen.answered, seen.answered_at = status, self._receiver._loop.time()
        self._transport.write(raw)
        self._asked()
        self._idle = self._receiver._loop.call_later(IDLE_S, self._transport.close)
        if seen.treated in ("half", "garbage", "late"):
            self._transport.close()

    def _drip(self, seen: Seen, raw: bytes, at: int) -> None:
        """One byte every 0.3 s: a head that takes a quarter of a minute."""
        if self._transport is None:
            return
        self._transport.write(raw[at : at + 1])
        if b"\r\n\r\n" in raw[: at + 1] and seen.answered is None:
            seen.answered, seen.answered_at = 200, self._receiver._loop.time()
        if at + 1 < len(raw):
            self._receiver._loop.call_later(0.3, self._drip, seen, raw, at + 1)


_PROBLEM = (("content-type", "application/problem+json"),)


def _words(treated: str, receiver: Receiver) -> tuple[int | None, bytes]:
    """Answer for a treatment: the status that counts (None: no complete answer) and the bytes."""
    if treated == "late":  # an answer with `connection: close` and a body that breaks off: the status decides
        return 200, b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\nconnection: close\r\n\r\nhalf a body"
    if treated == "hints":
        return 200, b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + answer(200)
    if treated == "half":
        return None, b"HTTP/1.1 200 OK\r\nx-incom"
    if treated == "garbage":
        return None, b"\x16\x03\x01 this is not HTTP\r\n\r\n"
    if treated == "throttling":
        return 429, answer(429, headers=(("retry-after", receiver.retry_after),))
    if treated == "503-later":
        return 503, answer(503, headers=(("retry-after", receiver.retry_after),), close=True)
    if treated == "verdict":
        return 422, answer(422, headers=_PROBLEM, body=b'{"code":"schema_unknown","retryable":false}')
    if treated == "key":
        return 401, answer(401, headers=_PROBLEM, body=b'{"code":"bad_signature","retryable":false}')
    if treated == "redirect":
        return 302, answer(302, headers=(("location", "/elsewhere"),))
    status = {"gone": 410, "errors": 500}.get(treated) or (int(treated) if treated.isdecimal() else 200)
    return status, answer(status)
