"""A line that breaks is made anew: at once where it brought something, ever more slowly where it brings nothing."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

import pytest

from lab.sim.loop import run
from surehook.ingest.intake import Delivered, Intake
from surehook.ingest.rabbit import NoSuchQueue, SourceAway
from surehook.ingest.reading import IngestRules
from surehook.ingest.run import MessageSource, QueueAddress
from surehook.ingest.run import run as ingest
from tests.ingest.test_intake import Given, Server

PLACE = QueueAddress("amqp://host/", "orders", "orders.dead", 10)


class Line:
    """A connection that brings `gives` and breaks after `lasts_s`."""

    def __init__(self, gives: list[Given], lasts_s: float) -> None:
        self.gives, self.lasts_s = gives, lasts_s
        self.is_paused = self.is_closed = False

    async def take(self, took: Callable[[Delivered], None], *, prefetch: int) -> None:
        for given in self.gives:
            took(given)

    async def pause(self) -> None:
        self.is_paused = True

    async def lost(self) -> str:
        await asyncio.sleep(self.lasts_s)
        self.lasts_s = 0.0
        return "cut"

    async def close(self) -> None:
        self.is_closed = True


def story(connect: Callable[[int], Line], seconds: float) -> tuple[list[float], list[str], list[Line]]:
    """When it was connected, what was told, and the lines, of so many seconds."""
    times: list[float] = []
    told: list[str] = []
    lines: list[Line] = []
    began = 0.0

    async def connecting(url: str, queue: str, dead_letters: str) -> MessageSource:
        assert (url, queue, dead_letters) == ("amqp://host/", "orders", "orders.dead")
        times.append(asyncio.get_running_loop().time() - began)
        lines.append(connect(len(times)))
        return lines[-1]

    async def play() -> None:
        nonlocal began
        began = asyncio.get_running_loop().time()
        server = Server()
        intake = Intake(
            server.post, rules=IngestRules(), new_id=lambda: "evt_x", sleep=asyncio.sleep, tell=told.append
        )
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(seconds, stop.set)
        await ingest(PLACE, intake, stop=stop, tell=told.append, connect=connecting)

    run(play())
    assert all(line.is_closed for line in lines)
    return times, told, lines


def test_a_line_that_breaks_at_once_each_time_does_not_spin() -> None:
    times, told, _ = story(lambda _: Line([], 0.01), 60)
    gaps = [round(later - before, 1) for before, later in itertools.pairwise(times)]
    assert gaps == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0, 10.0, 10.0]
    assert told[:3] == ["taking from orders", "the broker is away: cut", "the broker is back"]


def test_a_line_that_brought_something_is_made_anew_at_once() -> None:
    times, told, _ = story(lambda number: Line([Given(number)], 1.0), 10)
    assert len(times) == 9  # of 1.2 s each
    assert told.count("the broker is away: cut") == 8


def test_a_line_that_lasted_is_made_anew_at_once_though_its_queue_was_empty() -> None:
    times, told, _ = story(lambda _: Line([], 20.0), 100)
    assert [round(time, 1) for time in times] == [0.0, 20.2, 40.4, 60.6, 80.8]
    assert told.count("the broker is back") == told.count("the broker is away: cut") == 4


def test_at_the_end_what_was_taken_is_settled_before_the_line_is_closed() -> None:
    given = Given(1)
    _, told, (line,) = story(lambda _: Line([given], 1e9), 0.001)
    assert given.fate == ["acked"]
    assert line.is_paused
    assert told == ["taking from orders"]


def test_a_broker_that_is_away_is_waited_for_and_told_once() -> None:
    def connect(number: int) -> Line:
        if number < 4:
            raise SourceAway("nobody there")
        return Line([], 1e9)

    times, told, _ = story(connect, 30)
    assert [round(time, 1) for time in times] == [0.0, 0.2, 0.6, 1.4]
    assert told == ["the broker is away: nobody there", "taking from orders"]


def test_a_queue_that_is_not_there_ends_it_only_at_the_start() -> None:
    def never(number: int) -> Line:
        raise NoSuchQueue("there is no queue orders")

    with pytest.raises(NoSuchQueue):
        story(never, 10)

    def later(number: int) -> Line:
        if number == 2:
            raise NoSuchQueue("there is no queue orders")
        return Line([], 1.0)

    times, _, _ = story(later, 5)
    assert len(times) > 2
