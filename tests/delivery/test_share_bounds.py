"""How much one exchange carries, and that nothing is left behind by it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from lab.health import LocalHealth
from surehook.core.policy import BreakerPolicy
from surehook.delivery.breakers import Breakers
from surehook.delivery.cluster_health import AGAIN_EVERY, ClusterHealth
from surehook.delivery.endpoint_state import UrlBreaker
from surehook.delivery.health_reports import REPORTS_MAX, HealthReports
from surehook.delivery.slot_parts import SlotParts

NOW = 1_790_000_000_000
POLICY = BreakerPolicy(window=600.0, failure_ratio=0.4, calls=20, probe_after=300.0)


class Listening(LocalHealth):
    """The store, which notes what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[dict[str, Any]] = []

    async def exchange(self, **asked: Any) -> Any:
        self.asked.append(asked)
        return await super().exchange(**asked)


def make(count: int) -> tuple[ClusterHealth, Listening, list[UrlBreaker]]:
    memory = Breakers(together=True)
    endpoints: Any = [
        SimpleNamespace(
            endpoint=SimpleNamespace(tenant="acme", url=f"https://e{n}.example:443/"), breaker_policy=POLICY
        )
        for n in range(count)
    ]
    breakers = [memory.join(one) for one in endpoints]
    directory: Any = SimpleNamespace(breakers=memory, routes={})
    health = Listening()
    clock: Any = SimpleNamespace(now=lambda: NOW)
    indifferent: Any = SimpleNamespace(
        breaker_told=lambda breaker, change, endpoint: None,
        hear=lambda view: None,
        heard=lambda breaker: None,
    )
    share = ClusterHealth(
        health=health,
        clock=clock,
        directory=directory,
        telemetry=SimpleNamespace(fact=lambda name, **fields: None),  # type: ignore[arg-type]
        node=SimpleNamespace(id=b"n" * 16),  # type: ignore[arg-type]
        slots=SlotParts(directory=directory, flights=set(), slots=32),
        record=indifferent,
        reports=HealthReports(),
        breakers=indifferent,
    )
    return share, health, breakers


def test_every_open_breaker_is_told_again_in_its_turn() -> None:
    share, health, breakers = make(2 * REPORTS_MAX + 500)
    for breaker in breakers:
        breaker.trip("failures", NOW)

    async def main() -> None:
        for _ in range(3 * AGAIN_EVERY):
            await share.exchange()

    asyncio.run(main())
    told = [turn.key for asked in health.asked for turn in asked["updates"]]
    assert set(told) == {breaker.key for breaker in breakers}
    assert max(len(asked["updates"]) for asked in health.asked) == REPORTS_MAX


def test_what_does_not_fit_into_one_exchange_comes_with_the_next() -> None:
    share, health, breakers = make(REPORTS_MAX + 5)
    for breaker in breakers:
        breaker.after(True, NOW, probe=None)

    async def main() -> None:
        await share.exchange()
        await share.exchange()

    asyncio.run(main())
    assert [len(asked["counted"]) for asked in health.asked] == [REPORTS_MAX, 5]


def test_a_breaker_whose_policy_went_away_and_came_back_reports_again() -> None:
    share, health, (breaker,) = make(1)
    breaker.after(True, NOW, probe=None)
    breaker.policy = None
    asyncio.run(share.exchange())
    assert health.asked[-1]["counted"] == []
    breaker.policy = POLICY
    breaker.after(True, NOW, probe=None)
    asyncio.run(share.exchange())
    ((_, calls, failures),) = health.asked[-1]["counted"][0].buckets
    assert (calls, failures) == (1, 1)


def test_a_part_of_slots_that_another_clock_gave_ends_when_the_clock_is_set_back() -> None:
    """The endpoint had a quarter of its slots for as long as the clock had been ahead."""
    route: Any = type("Shared", (), {"slots": 32})()
    directory: Any = SimpleNamespace(routes={b"e": route})
    parts = SlotParts(directory=directory, flights=set(), slots=32)
    parts.divide({b"e": 4}, NOW + 86_400_000)
    assert route.slots == 8
    parts.divide({}, NOW)
    assert route.slots == 32
