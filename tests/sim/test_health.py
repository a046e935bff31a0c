"""Worlds whose nodes share health: one probe of all, also while the store is away for a while or forgets."""

from __future__ import annotations

from typing import Any

import pytest

from lab.health import LocalHealth
from lab.sim import health as simulated
from lab.sim.receivers import Mood
from lab.sim.run import Report, run
from lab.sim.swarm import Customer, Options
from tests.budget import every

POLICY = {
    "profile": "standard",
    "timeouts": {"first": 1, "retry": 4, "connect": 2},
    "schedule": {"fixed": [1, 2, 4]},
    "breaker": {"window": 30, "failure_ratio": 0.4, "calls": 4, "probe_after": 4},
}


def dead_for_a_while(*acts: tuple[float, str], seed: int = 1) -> Report:
    """Three nodes, one customer who answers 500 for forty seconds, two hundred events. `acts` befall the store."""
    customer = Customer(
        tenant="t1", host="r0.example", address="198.51.100.1", port=443, policy=POLICY, event_types=("*",),
        moods=[(0.0, Mood(treatment="errors", flaw_share=1.0)), (40.0, Mood())],
    )  # fmt: skip
    return run(
        seed,
        options=Options(
            seed=seed, faults=(), nodes=3, customers=[customer], orders=[], blows=[], storm_s=50.0, calm_s=400.0,
            publishes=[(0.5 + number * 0.1, "t1", "document.signed", 1) for number in range(200)],
            engine={}, health=acts,
        ),
    )  # fmt: skip


@pytest.mark.parametrize("seed", every(3, range(3)))
def test_one_node_is_the_probe_of_all(seed: int) -> None:
    report = dead_for_a_while(seed=seed)
    assert report.finding is None
    assert report.counts["probe-watched"] >= 5
    assert report.requests - 200 <= 20, "those that opened it, and one in four seconds, forty seconds long"


@pytest.mark.parametrize(
    "acts",
    [
        ((10.0, "away"), (25.0, "back")),
        ((10.0, "flush"),),
        ((5.0, "flush"), (12.0, "away"), (12.5, "flush"), (14.0, "back"), (30.0, "flush")),
    ],
)
def test_a_store_in_trouble_costs_no_delivery(acts: tuple[tuple[float, str], ...]) -> None:
    report = dead_for_a_while(*acts)
    assert report.finding is None
    assert sum(report.ends.values()) == 200


class Generous(LocalHealth):
    """A planted bug: whoever asks is the probe."""

    async def take_probe(self, *asked: Any, **named: Any) -> bool:
        return await super().take_probe(*asked, **named) or True


def test_a_store_that_lets_every_node_probe_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated, "LocalHealth", Generous)
    finding = dead_for_a_while().finding
    assert finding is not None and "probe" in finding
