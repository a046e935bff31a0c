"""Worlds in which a replay's walker freezes or dies half-way: another goes on, and nothing is made or counted twice."""

from __future__ import annotations

from typing import Any

import pytest

from lab.ledger.ledger import MemoryLedger
from lab.sim import run as running
from lab.sim.orders import Blow, Order
from lab.sim.receivers import Mood
from lab.sim.run import Report
from lab.sim.swarm import Customer, Options
from surehook.delivery import replay


def walked(ledger: MemoryLedger, *blows: Blow, seed: int = 1) -> Report:
    """Sixty delivered events, replayed by pages that take about a second each."""
    customer = Customer(
        tenant="t1", host="r0.example", address="198.51.100.1", port=443, policy=None, event_types=("*",),
        moods=[(0.0, Mood())],
    )  # fmt: skip
    options = Options(
        seed=seed, faults=(), nodes=3, customers=[customer], orders=[Order(20.0, "replay", 0)], blows=list(blows),
        publishes=[(0.5 + number * 0.1, "t1", "document.signed", 1) for number in range(60)],
        storm_s=120.0, calm_s=400.0, engine={}, late_s=(0.0, 0.3),
    )  # fmt: skip
    return running._run(options, "memory", lambda world: ledger, 0)


EACH = range(3)  # whichever of them walks from second 20 on, it is struck on its way
FREEZES = [Blow(22.0 + 18 * which, "freeze", which, seconds=40.0) for which in EACH]
KILLS = [Blow(22.0 + 8 * which, "kill", which, seconds=20.0) for which in EACH]


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "PAGE_ROWS", 2)


@pytest.mark.parametrize("blows", [[], FREEZES, KILLS], ids=["calm", "freezes", "kills"])
def test_a_replay_is_walked_to_its_end_and_counted_once(blows: list[Blow]) -> None:
    ledger = MemoryLedger()
    report = walked(ledger, *blows)
    assert report.finding is None
    (job,) = ledger.book.replays.values()
    events = report.events  # some of the sixty are repeats
    assert (job.state, job.matched, job.created) == ("done", events, events)
    assert report.deliveries == 2 * events >= 100


class Anywhere(MemoryLedger):
    """A planted bug: a walker moves the job from wherever it believes it to be."""

    async def advance_replay(self, before: Any, *page: Any, **named: Any) -> Any:
        self.book.replays[before.id] = before
        return await super().advance_replay(before, *page, **named)


def test_a_walker_that_moves_a_job_back_is_found_out() -> None:
    """In which of the worlds it is frozen on its way is chance."""
    assert any(walked(Anywhere(), *FREEZES, seed=seed).finding is not None for seed in range(8))
