"""The road to the application does to requests what its shares say, and remembers what arrived."""

from __future__ import annotations

import random
import socket

import pytest

from surehook.demo.receiver import HttpReceiver, HttpReply, HttpRequest
from surehook.demo.road import BAD_GATEWAY, Road, Way

ROAD = Road(loses=0.1, forgets=0.1, repeats=0.1, holds=0.1, hold_s=(0.0, 0.0))
POST = HttpRequest(
    "POST", "/hooks/surehook", [("Host", "x"), ("webhook-id", "evt_1"), ("Content-Length", "2")], b"{}"
)
STORED = HttpReply(200, b'{"ok":true}')


class Drawn(random.Random):
    """Chance that draws the same number each time."""

    def __init__(self, number: float) -> None:
        super().__init__(0)
        self._number = number

    def random(self) -> float:
        return self._number


async def carried(
    drawn: float, reply: HttpReply = STORED
) -> tuple[HttpReply, list[HttpRequest], list[int | None]]:
    """What came back, what arrived at the application, and what it answered."""
    arrived: list[HttpRequest] = []
    answered: list[int | None] = []

    async def application(request: HttpRequest) -> HttpReply:
        return reply

    receiver = HttpReceiver(application)
    way = Way(
        ROAD, "127.0.0.1", await receiver.start("127.0.0.1", 0),
        arrived=arrived.append, answered=lambda _, given: answered.append(given.status), rng=Drawn(drawn),
    )  # fmt: skip
    try:
        return await way.carry(POST), arrived, answered
    finally:
        await receiver.stop()


@pytest.mark.parametrize(
    ("what", "drawn", "back", "times"),
    [
        ("lost", 0.05, None, 0),
        ("arrived, and its answer lost", 0.15, None, 1),
        ("arrived twice", 0.25, 200, 2),
        ("held back", 0.35, 200, 1),
        ("undisturbed", 0.45, 200, 1),
    ],
)
async def test_a_share_of_requests_meets_each_fate(
    what: str, drawn: float, back: int | None, times: int
) -> None:
    reply, arrived, answered = await carried(drawn)
    assert (reply.status, len(arrived), answered) == (back, times, [200] * times), what


async def test_bytes_headers_and_the_answer_come_through_as_they_are() -> None:
    reply, arrived, _ = await carried(0.9, HttpReply(401, b'{"retryable":false}', "application/problem+json"))
    assert (reply.status, reply.body, reply.content_type) == (
        401,
        b'{"retryable":false}',
        "application/problem+json",
    )
    assert arrived == [POST]


async def test_an_answer_that_breaks_off_is_none() -> None:
    reply, arrived, answered = await carried(0.9, HttpReply(None))
    assert (reply, len(arrived), answered) == (BAD_GATEWAY, 1, [])


async def test_nobody_there_is_a_bad_gateway() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    way = Way(ROAD, "127.0.0.1", port, arrived=lambda _: None, answered=lambda *_: None, rng=Drawn(0.9))
    assert await way.carry(POST) == BAD_GATEWAY
