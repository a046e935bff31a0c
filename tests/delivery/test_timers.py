"""Held work whose time has not come: only what is due soon stays in memory, whatever the clock did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lab.ledger.ledger import MemoryLedger
from surehook.core.model import Settled
from surehook.delivery.settings import EngineSettings
from surehook.ports.ledger import Recorded

from .house import House, answers, in_house

A, B = "https://a.example/hook", "https://b.example/hook"
HOUR_S = 3600


def test_what_a_clock_ahead_of_its_time_has_claimed_keeps_nobody_out_of_memory() -> None:
    """Two retries that are due in an hour fill the memory of a tenant, and what is parked for a share of it would wait so long."""
    fails_then_well = iter((500, 500))

    async def story(house: House) -> None:
        house.receivers.scripts[A] = lambda call: answers(next(fails_then_well, 200))(call)
        await house.endpoint(
            A, types=("a",), policy={"profile": "standard", "schedule": {"fixed": [HOUR_S]}, "jitter": None}
        )
        await house.endpoint(B, types=("b",))
        await house.publish(2, type="a")
        await house.wait(1)
        memory = house.engine.dispatch.memory
        assert (len(house.receivers.at(A)), memory.held) == (2, 0)
        house.clock.step(HOUR_S * 1000 - 1400)
        house.engine.claim_looks.wake()
        await house.wait(0.1)
        assert memory.held == 2, "claimed half a second ahead of their time"
        house.clock.step(1400 - HOUR_S * 1000)
        await house.wait(1.2)
        assert memory.held == 0
        assert await house.states() == {"retrying": 2}
        await house.publish(3, type="b")
        await house.wait(1)
        assert len(house.receivers.at(B)) == 3
        assert len(house.receivers.at(A)) == 2, "nothing leaves early"
        await house.wait(HOUR_S)
        assert len(house.receivers.at(A)) == 4
        assert await house.states() == {"delivered": 2 + 3}

    in_house(story, settings=EngineSettings(memory_deliveries=2))


class Returns(MemoryLedger):
    """Counts what is given back unsent."""

    count = 0

    async def record(self, settled: Sequence[Settled], *, now: int, **named: Any) -> Recorded:
        self.count += sum(one.entry is None and one.end is None for one in settled)
        return await super().record(settled, now=now, **named)


def test_who_claims_far_ahead_keeps_what_it_claims() -> None:
    """Far is what lies far beyond how far ahead claims look."""
    fails_once = iter((500,))

    async def story(house: House) -> None:
        house.receivers.scripts[A] = lambda call: answers(next(fails_once, 200))(call)
        await house.endpoint(
            A, types=("a",), policy={"profile": "standard", "schedule": {"fixed": [8]}, "jitter": None}
        )
        await house.endpoint(B, types=("b",))
        await house.publish(1, type="a")
        for _ in range(3):
            await house.wait(1)
            await house.publish(1, type="b")
            house.engine.claim_looks.wake()
        await house.wait(0.1)
        assert house.engine.dispatch.memory.held == 1, "claimed seconds ahead of its time"
        await house.wait(8)
        assert await house.states() == {"delivered": 4}
        assert isinstance(house.ledger, Returns)
        assert house.ledger.count == 0

    in_house(story, settings=EngineSettings(claim_ahead_s=10.0), ledger=Returns)
