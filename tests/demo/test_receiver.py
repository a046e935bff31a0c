"""The small receiver: what it answers, when it does not, and what it remembers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from surehook.core.verification import Verifier
from surehook.demo.memory import ReceiverMemory
from surehook.demo.receiver import BODY_BYTES_MAX, Behaviour, HttpReceiver, HttpReply, HttpRequest
from surehook.verify import sign

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[Any]]


def converse(
    reply: HttpReply | list[HttpReply], talk: Talk
) -> tuple[Any, list[HttpRequest], list[int | None]]:
    """Talk to a receiver that gives these replies; returns the talk's result, requests, and statuses written."""
    replies = [reply] if isinstance(reply, HttpReply) else reply
    requests: list[HttpRequest] = []
    written: list[int | None] = []

    async def answer(request: HttpRequest) -> HttpReply:
        requests.append(request)
        return replies[min(len(requests), len(replies)) - 1]

    async def main() -> Any:
        receiver = HttpReceiver(answer, lambda _, reply: written.append(reply.status))
        port = await receiver.start("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            async with asyncio.timeout(5):
                return await talk(reader, writer)
        finally:
            writer.close()
            await receiver.stop()

    return asyncio.run(main()), requests, written


def post(body: bytes = b"{}", *headers: str) -> bytes:
    lines = ["POST /hooks HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def test_requests_on_one_connection_are_answered_in_turn() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> list[bytes]:
        heads = []
        for _ in range(2):
            writer.write(post(b"hello", "X-A: b"))
            heads.append(await reader.readuntil(b"\r\n\r\n"))
        return heads

    heads, requests, written = converse([HttpReply(200), HttpReply(503)], talk)
    assert [head.split()[1] for head in heads] == [b"200", b"503"]
    assert [(r.method, r.path, r.body, r.header("x-a")) for r in requests] == [
        ("POST", "/hooks", b"hello", "b")
    ] * 2
    assert written == [200, 503]


def test_a_reply_without_a_status_is_silence() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(post())
        return await reader.read()

    assert converse(HttpReply(None), talk) == (
        b"",
        [HttpRequest("POST", "/hooks", [("Host", "x"), ("Content-Length", "2")], b"{}")],
        [],
    )


def test_a_sender_that_hangs_up_while_it_waits_was_not_answered() -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(post())
        await writer.drain()
        writer.close()
        await asyncio.sleep(0.05)  # the receiver is still inside its delay of ten seconds; it must notice

    _, requests, written = converse(HttpReply(200, delay_s=10), talk)
    assert (len(requests), written) == (1, [])


def test_a_sender_that_talks_on_while_it_should_wait_is_hung_up_on() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(post() + post())
        return await reader.read()

    assert converse(HttpReply(200, delay_s=10), talk)[0] == b""


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n\r\n",
        b"POST\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (BODY_BYTES_MAX + 1),
        b"POST / HTTP/1.1\r\nx: " + b"y" * 100_000,
    ],
)
def test_rubbish_ends_the_connection_and_nothing_else(data: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(data)
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""

    assert converse(HttpReply(200), talk)[0] == b""


@pytest.mark.parametrize(
    ("behaviour", "chance", "status"),
    [
        (Behaviour(), 0.0, 200),
        (Behaviour(status=204), 0.99, 204),
        (Behaviour(flaky=0.3), 0.05, None),
        (Behaviour(flaky=0.3), 0.2, 500),
        (Behaviour(flaky=0.3), 0.3, 200),
        (Behaviour(status=503, flaky=0.3), 0.2, 200),
        (Behaviour(hangs=True), 0.5, None),
    ],
)
def test_a_behaviour_is_a_rule_over_a_chance(behaviour: Behaviour, chance: float, status: int | None) -> None:
    assert behaviour.reply(chance).status == status


def request(delivery: str | None, *, body: bytes = b"{}", secret: str = SECRET) -> HttpRequest:
    headers = list(sign(secret, "evt_1", b"{}", timestamp=1000).items())
    if delivery is not None:
        headers.append(("webhook-delivery-id", delivery))
    return HttpRequest("POST", "/", headers, body)


def test_a_memory_tells_a_retry_from_a_repeat() -> None:
    memory = ReceiverMemory(seen={})
    first = request("dlv_1")
    memory.note(first, None, now=1000)
    memory.answered(first, HttpReply(500))
    memory.note(first, None, now=1000)
    memory.answered(first, HttpReply(200))
    memory.note(first, None, now=1000)
    memory.note(request("dlv_2"), None, now=1000)
    one, two = memory.seen["dlv_1"], memory.seen["dlv_2"]
    assert (one.requests, one.answered, one.repeated) == (3, True, 1)
    assert (two.requests, two.answered, two.repeated) == (1, False, 0)
    assert memory.requests == 4


def test_a_memory_counts_what_cannot_be_believed() -> None:
    verifier = Verifier(SECRET)
    memory = ReceiverMemory(seen={})
    memory.note(request("dlv_1"), verifier, now=1000)
    assert memory.unverified == 0
    memory.note(request("dlv_1", body=b"{ }"), verifier, now=1000)
    memory.note(request("dlv_1"), verifier, now=9000)
    memory.note(request(None), verifier, now=1000)
    assert memory.unverified == 3
