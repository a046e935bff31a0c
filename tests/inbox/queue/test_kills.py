"""Brokers and movers are killed under load, and what was answered 2xx is counted against effects: none lost, none twice.

Killed is the process and not the machine: what the kernel has is kept, so this says nothing of an fsync that is missing. That
brokers are asked for one is what `test_settings.py` looks at.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from surehook.host.clock import SystemClock
from tests import servers
from tests.delivery.firm import until
from tests.inbox.house import House, call, message, partner

pytestmark = pytest.mark.slow

SENDERS = 8
WAIT_S = 60.0
ROOT = Path(__file__).parents[3]


class Movers:
    """One mover process at a time, started again when it has killed itself."""

    def __init__(self, *words: str) -> None:
        self._command = [sys.executable, "-m", "tests.inbox.programs.mover", *words]
        self.process: subprocess.Popen[bytes] | None = None
        self.deaths = 0

    def start(self, *point: str) -> None:
        self.process = subprocess.Popen([*self._command, *point], cwd=ROOT)

    async def died(self) -> None:
        assert self.process is not None
        async with asyncio.timeout(WAIT_S):
            assert await asyncio.to_thread(self.process.wait) == -signal.SIGKILL
        self.deaths += 1

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class RedisServer:
    """A broker that can be killed and started again."""

    rounds = 2

    def __init__(self) -> None:
        self.server = servers.Redis.new(keeping=True, always=True)
        self.url = self.server.url

    def restart(self) -> None:
        self.server.restart(immediate=True)

    def close(self) -> None:
        self.server.close()


class RabbitServers:
    """Three nodes, of which one is killed. A lone one of version 3.10 that was killed does not always bring its quorum queues back,
    whoever made them: nobody is leader, and neither confirms nor messages come."""

    rounds = 1

    def __init__(self) -> None:
        self.rabbits = servers.Rabbits.new(3)
        self.url = ",".join(self.rabbits.urls)

    def restart(self) -> None:
        self.rabbits.nodes[0].restart(immediate=True)

    def close(self) -> None:
        self.rabbits.close()


@pytest.fixture(params=[RedisServer, RabbitServers], ids=["redis", "rabbitmq"])
def killable(request: pytest.FixtureRequest) -> Iterator[Any]:
    server = request.param()
    yield server
    server.close()


@pytest.fixture(params=["redis", "rabbitmq"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A broker that stays."""
    if request.param == "rabbitmq":
        yield request.getfixturevalue("broker")
        return
    server = RedisServer()
    yield server.url
    server.close()


@pytest.fixture(params=["sync", "async"])
def made(
    request: pytest.FixtureRequest, ground_of: Callable[[str, str], tuple[str, str]], runner: asyncio.Runner
) -> Iterator[Callable[[str], tuple[House, Movers]]]:
    """`made(queue)`: a house on PostgreSQL whose door is in this process, and movers of the same kind in others."""
    kind, url = ground_of("postgresql", request.param)
    with ExitStack() as stack:

        def make(queue: str) -> tuple[House, Movers]:
            open_to_conflicts = [partner(on_conflict="accept")]
            house = House(kind, url, runner, sources=open_to_conflicts, queue=queue, clock=SystemClock())
            movers = Movers(kind, url, queue)
            stack.callback(house.close)
            stack.callback(movers.kill)
            return house.prepare(), movers

        yield make


class Load:
    """Senders that repeat each message until it is answered 2xx."""

    def __init__(self, house: House) -> None:
        self._house = house
        self.answered: list[str] = []
        self.is_over = False

    async def run(self) -> None:
        await asyncio.gather(*(self._send(number) for number in range(SENDERS)))

    async def _send(self, number: int) -> None:
        turn = 0
        while not self.is_over:
            event_id = f"evt_{number}_{turn}"
            request = call(*message(event_id), at=self._house.clock.now())
            inbox = self._house.inbox
            reply = await (
                inbox.receive(request)
                if self._house.kind == "async"
                else asyncio.to_thread(inbox.receive, request)
            )
            if reply.status == 200:
                self.answered.append(event_id)
                turn += 1
            await asyncio.sleep(0.002)

    async def reached(self, more: int) -> None:
        """Until so many more were answered."""
        goal = len(self.answered) + more
        await until(lambda: len(self.answered) >= goal, within_s=WAIT_S)


def told(house: House, load: Load) -> None:
    effects = Counter(row[0] for row in house.sql("select event_id from effects"))
    assert [event for event in load.answered if effects[event] == 0] == []
    assert [event for event, count in effects.items() if count > 1] == []


async def settled(house: House, load: Load) -> None:
    """Until every answered event has had its effect."""
    async with asyncio.timeout(WAIT_S):
        while True:
            rows = await asyncio.to_thread(counted, house)
            if rows >= len(load.answered):
                return
            await asyncio.sleep(0.2)


def is_over(house: House, goal: int) -> bool:
    """Whether so many went by the queue."""
    return house.inbox.watch.queued.get("partner", 0) >= goal


def counted(house: House) -> int:
    from sqlalchemy import create_engine, text

    engine = create_engine(house.url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with engine.connect() as connection:
            return int(connection.execute(text("select count(*) from effects")).scalar() or 0)
    finally:
        engine.dispose()


@pytest.mark.parametrize("point", ["taken", "committed"])
def test_movers_killed_between_confirm_and_acknowledgement_lose_nothing_and_apply_nothing_twice(
    made: Callable[[str], tuple[House, Movers]], url: str, point: str
) -> None:
    house, movers = made(url)
    load = Load(house)

    async def story() -> None:
        sending = asyncio.create_task(load.run())
        await load.reached(50)
        for count in (1, 7, 40):
            movers.start(point, str(count))
            await movers.died()
            await load.reached(20)
        load.is_over = True
        await sending
        movers.start()
        await settled(house, load)

    house._runner.run(story())
    told(house, load)
    assert movers.deaths == 3
    assert house.inbox.watch.queued["partner"] == len(load.answered)


def test_a_broker_killed_under_load_loses_nothing_and_applies_nothing_twice(
    made: Callable[[str], tuple[House, Movers]], killable: Any, caplog: pytest.LogCaptureFixture
) -> None:
    house, movers = made(killable.url)
    load = Load(house)

    async def story() -> None:
        sending = asyncio.create_task(load.run())
        movers.start()
        for _ in range(killable.rounds):
            await load.reached(100)
            goal = house.inbox.watch.queued.get("partner", 0) + 50
            await asyncio.to_thread(killable.restart)  # meanwhile the table takes what comes
            await until(partial(is_over, house, goal), within_s=WAIT_S)  # and then the queue again
        load.is_over = True
        await sending
        await settled(house, load)

    house._runner.run(story())
    told(house, load)
    lines = [one for one in caplog.records if "queue in front" in one.getMessage()]
    assert 2 <= len(lines) <= 10, "when it begins and when it is over, and no line for each request"
