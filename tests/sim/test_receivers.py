"""Modelled customers treat requests as their mood says and write down what they saw."""

from __future__ import annotations

import asyncio
import json
import random

import pytest

from lab.sim.http import Malformed, Parser
from lab.sim.loop import SimLoop, run
from lab.sim.network import SimNetwork
from lab.sim.receivers import Mood, Receiver

BODY = json.dumps({"id": "evt_1", "data": {}}).encode()


def request(attempt: int = 1, *, extra: bytes = b"", body: bytes = BODY) -> bytes:
    return (
        b"POST /hook HTTP/1.1\r\nHost: r1.example\r\nContent-Length: %d\r\nwebhook-id: evt_1\r\n"
        b"webhook-delivery-id: dlv_1\r\nwebhook-attempt: %d\r\nwebhook-retry-count: %d\r\n"
        b"webhook-timestamp: 1767225600\r\n%b\r\n%b" % (len(body), attempt, attempt - 1, extra, body)
    )


class Conversation:
    """What one client got, and what the receiver remembers."""

    def __init__(self, answer: bytes, receiver: Receiver, seconds: float) -> None:
        self.answer = answer
        self.receiver = receiver
        self.seconds = seconds

    @property
    def status(self) -> int | None:
        head = self.answer.split(b"\r\n", 1)[0].split(b" ")
        return int(head[1]) if head[0] == b"HTTP/1.1" else None


def converse(mood: Mood, raw: bytes, *, wait_s: float = 100.0, times: int = 1) -> Conversation:
    """Send `raw` (`times` over) to a receiver in that mood and read until it ends or `wait_s` passed."""
    loop = SimLoop(1)

    async def main() -> Conversation:
        network = SimNetwork(loop, random.Random(1))
        receiver = Receiver("r1", loop, random.Random(2), mood=mood)
        network.listen("198.51.100.1", 80, receiver)
        reader = asyncio.StreamReader()
        began = loop.time()
        transport = await network.dial(None, "198.51.100.1", 80, asyncio.StreamReaderProtocol(reader))
        got = b""
        for _ in range(times):
            got = b""
            transport.write(raw)
            try:
                async with asyncio.timeout(wait_s):
                    while not got.endswith(b"\r\n\r\n") and (piece := await reader.read(65_536)):
                        got += piece
            except (TimeoutError, ConnectionResetError):
                pass
        took = loop.time() - began
        transport.abort()
        await asyncio.sleep(1)
        return Conversation(got, receiver, took)

    return run(main(), loop=loop)


@pytest.mark.parametrize(
    ("treatment", "status"),
    [("healthy", 200), ("errors", 500), ("gone", 410), ("verdict", 422), ("key", 401), ("redirect", 302)],
)
def test_a_mood_answers_with_its_status_and_the_request_is_on_record(treatment: str, status: int):
    said = converse(Mood(treatment=treatment), request(), wait_s=5)
    assert said.status == status
    (seen,) = said.receiver.seen
    assert (seen.event, seen.delivery, seen.attempt, seen.answered) == ("evt_1", "dlv_1", 1, status)
    assert said.receiver.findings == []


@pytest.mark.parametrize("treatment", ["hanging", "deaf"])
def test_who_hangs_never_answers(treatment: str):
    said = converse(Mood(treatment=treatment), request(), wait_s=100)
    assert said.answer == b""
    assert said.seconds >= 100
    assert len(said.receiver.seen) == (treatment == "hanging"), "the deaf do not even read"


def test_a_drip_takes_its_time():
    said = converse(Mood(treatment="dripping"), request(), wait_s=100)
    assert said.status == 200
    assert said.seconds > 10


def test_throttling_lets_some_through_each_second_and_says_when_to_come_back():
    said = converse(Mood(treatment="throttling", per_second=2), request(), times=3, wait_s=5)
    assert said.status == 429
    assert b"retry-after: 2" in said.answer
    assert [seen.treated for seen in said.receiver.seen] == ["healthy", "healthy", "throttling"]


def test_a_connection_serves_several_requests():
    said = converse(Mood(), request(), times=5, wait_s=5)
    assert len(said.receiver.seen) == 5


@pytest.mark.parametrize(
    "raw",
    [
        request(extra=b"Host: other\r\n"),
        request(extra=b"X-Folded: a\r\n b\r\n"),
        request() + b"POST",
        request().replace(b"Content-Length", b"X-Length"),
        request().replace(b"HTTP/1.1", b"HTTP/1.0"),
        request(body=b"x"),
    ],
)
def test_what_surehook_promises_never_to_send_is_a_finding(raw: bytes):
    said = converse(Mood(), raw, wait_s=5)
    assert said.receiver.findings


def test_a_request_is_whole_however_it_is_cut():
    raw = request()
    for cut in range(1, len(raw)):
        parser = Parser()
        assert parser.feed(raw[:cut]) is None
        whole = parser.feed(raw[cut:])
        assert whole is not None
        assert whole.body == BODY


def test_a_head_without_end_is_refused():
    with pytest.raises(Malformed):
        Parser().feed(b"POST / HTTP/1.1\r\n" + b"x" * 20_000)
