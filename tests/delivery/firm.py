"""One node that takes events in, workers, and whatever broker between them; all on one memory ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from surehook.delivery.engine import Engine
from surehook.delivery.settings import EngineSettings
from surehook.ports.handoff import LaneBroker
from tests.delivery.house import Host, House

TAKES_IN = EngineSettings(lanes=(), memory_deliveries=0)  # everything it accepts is for others


class Works(Host):
    """Another machine: nobody sees its process."""

    def is_gone(self, node: Any) -> bool:
        return False


class Firm:
    """`broker` makes the port of one node."""

    def __init__(
        self,
        loop: Any,
        broker: Callable[[], LaneBroker],
        *,
        workers: int = 2,
        worker: EngineSettings | None = None,
    ) -> None:
        self.house = House(loop, TAKES_IN)
        self._broker = broker
        self.house.engine = self._engine(TAKES_IN)
        self.workers = [self._engine(worker or EngineSettings()) for _ in range(workers)]

    def _engine(self, settings: EngineSettings) -> Engine:
        house = self.house
        return Engine(
            ledger=house.ledger, transport=house.receivers, clock=house.clock, entropy=house.entropy,
            host=Works(), telemetry=house.facts, settings=settings, sole=False,
            broker=self._broker(), handing=house.ledger,
        )  # fmt: skip

    @property
    def engines(self) -> list[Engine]:
        return [self.house.engine, *self.workers]

    @property
    def sent(self) -> int:
        return len(self.house.receivers.calls)

    @property
    def claimed(self) -> int:
        """How many rows came to workers by messages."""
        return sum(take.taken for worker in self.workers for take in worker.handoff.takes.values())

    async def start(self, *, policy: Any = None) -> None:
        await self.house.open()
        for engine in self.workers:
            await engine.start()
        await self.house.endpoint(policy=policy)
        for engine in self.workers:
            await engine.changed()

    async def stop(self) -> None:
        for engine in self.engines:
            await engine.stop()
            assert engine.failure is None
            assert engine.dispatch.memory.held == 0, "every delivery that memory held was let go"

    async def hire(self) -> None:
        """One more worker."""
        self.workers.append(self._engine(EngineSettings()))
        await self.workers[-1].start()

    async def publish(self, count: int) -> None:
        for _ in range(count):
            await self.house.publish()

    async def until(self, condition: Callable[[], bool], *, within_s: float = 20.0) -> None:
        await until(condition, within_s=within_s)


async def until(condition: Callable[[], bool], *, within_s: float = 10.0) -> None:
    """Wait until it is so, looking often; fails after `within_s`."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - many parts of the world decide it, none of which tells
            await asyncio.sleep(0.01)
