"""What is said of a node that lets a publish wait: only while it ran can it have forgotten somebody."""

from __future__ import annotations

import pytest

from lab.sim.orders import Blow
from lab.sim.receivers import Mood
from lab.sim.run import Report, run
from lab.sim.swarm import Customer, Options
from surehook.delivery.fair_batches import FairBatches

FORGOTTEN = "n0.1 let a publish of t1 wait for 30 s"


def told(*freezes: tuple[float, float], at: float, faults: tuple[str, ...] = ()) -> Report:
    """A node that freezes at these instants for so many seconds, and some who publish from `at` on."""
    customer = Customer(
        tenant="t1", host="r0.example", address="198.51.100.1", port=443, policy=None, event_types=("*",),
        moods=[(0.0, Mood())],
    )  # fmt: skip
    options = Options(
        seed=1, faults=faults, nodes=1, customers=[customer], orders=[],
        publishes=[(at + number * 0.1, "t1", "document.signed", 1) for number in range(10)],
        blows=[Blow(begin, "freeze", seconds=seconds) for begin, seconds in freezes],
        storm_s=100.0, calm_s=400.0, engine={},
    )  # fmt: skip
    return run(options.seed, options=options)


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: what comes to the door is never written, and nobody is told."""
    monkeypatch.setattr(FairBatches, "put", lambda *given: None)


def test_a_publish_waits_for_a_machine_that_is_frozen_whatever_froze_it() -> None:
    report = told((5.0, 60.0), at=6.0)
    assert report.finding is None
    assert report.counts["refused"] >= 5  # they hung up on it


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("freezes", [(), ((2.0, 2.0),)], ids=["runs", "ran again before"])
def test_a_node_that_forgets_a_publish_is_found_out_where_machines_freeze(
    freezes: tuple[tuple[float, float], ...],
) -> None:
    report = told(*freezes, at=6.0, faults=("freezes",))
    assert report.finding == FORGOTTEN
    assert report.virtual_s < 45.0  # the first who hung up told of it


@pytest.mark.usefixtures("forgetful")
def test_the_time_in_which_a_node_was_frozen_is_not_its_own() -> None:
    """Who came before it thawed hangs up six seconds later; who came again then has waited for thirty."""
    report = told((2.0, 34.0), at=12.0)
    assert report.finding == FORGOTTEN
    assert report.virtual_s > 36.0 + 30.0
