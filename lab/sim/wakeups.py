"""Hints between simulated processes: late, out of order, and sometimes lost, as the port allows."""

from __future__ import annotations

import asyncio
import random

from lab.sim.loop import Process, SimLoop
from surehook.ports.wakeups import Heard

LOST_SHARE = 0.2  # of hints: nothing may depend on one
LATE_S = 0.02


class SimWakeups:
    """`ports.Wakeups` for one process; `members` are those of all processes of the world."""

    def __init__(
        self, members: list[SimWakeups], process: Process, loop: SimLoop, chance: random.Random
    ) -> None:
        self._members = members
        self._process = process
        self._loop = loop
        self._chance = chance
        self._heard: Heard | None = None

    async def start(self, heard: Heard) -> None:
        self._heard = heard
        self._members.append(self)

    def publish(self, kind: str) -> None:
        if not self._process.alive:
            return
        for member in self._members:
            if member is not self and member._process.alive and self._chance.random() >= LOST_SHARE:
                self._loop.spawn(member._process, member._hear(kind, LATE_S * self._chance.random()))

    async def _hear(self, kind: str, late_s: float) -> None:
        await asyncio.sleep(late_s)
        if self._heard is not None:
            self._heard(kind)

    async def close(self) -> None:
        self._heard = None
