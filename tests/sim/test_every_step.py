"""A process dies before each of its steps in turn, and around each call of the ledger: nothing is lost."""

from __future__ import annotations

import os

import pytest

from lab.sim.orders import Blow
from lab.sim.receivers import Mood
from lab.sim.run import Report, run
from lab.sim.swarm import LEDGER_CALLS, Customer, Options
from tests.budget import every

EVERY = int(os.environ.get("EVERY_STEP", "0"))  # 1 kills at each of them: a quarter of an hour
STEPS = 700  # callbacks the first process runs from its start to the last delivery of this small world
POLICY = {
    "profile": "standard",
    "timeouts": {"first": 1, "retry": 4, "connect": 2},
    "schedule": {"fixed": [1, 2, 4]},
    "breaker": {"window": 30, "failure_ratio": 0.4, "calls": 3, "probe_after": 5},
}


def small_world(blow: Blow, *, seed: int = 1) -> Options:
    """Three customers (well, broken, slow), a dozen events within two seconds, one blow."""
    moods = (Mood(), Mood(treatment="errors"), Mood(treatment="slow", answer_s=(1.2, 1.5)))
    customers = [
        Customer(
            tenant="t1", host=f"r{number}.example", address=f"198.51.100.{number + 1}", port=443, policy=POLICY,
            event_types=("*",), moods=[(0.0, mood)],
        )
        for number, mood in enumerate(moods)
    ]  # fmt: skip
    return Options(
        seed=seed,
        faults=(),
        nodes=1,
        customers=customers,
        publishes=[(0.5 + number * 0.1, "t1", "document.signed", 1) for number in range(12)],
        orders=[],
        blows=[blow],
        storm_s=15.0,
        calm_s=400.0,
        engine={
            "slots_first": 4,
            "slots_retry": 4,
            "endpoint_slots": 2,
            "memory_deliveries": 20,
            "endpoint_share": 4,
        },
    )


def killed_at(step: int, *, ledger: str = "memory") -> Report:
    """The small world with its first process killed before callback `step`, counted from its start."""
    return run(1, ledger=ledger, options=small_world(Blow(0.0, "kill", steps=step, seconds=0.1)))  # type: ignore[arg-type]


def test_the_steps_that_are_tried_reach_the_end_of_the_work():
    assert killed_at(100_000).counts["died"] == 1, "only the stop at the end"
    assert killed_at(STEPS).counts["died"] == 2, "the process still runs at the last step that is tried"


@pytest.mark.parametrize("step", every(5, range(0, STEPS, 35)))
def test_nothing_is_lost_at_some_steps(step: int):
    assert killed_at(step).finding is None


@pytest.mark.slow
@pytest.mark.parametrize("ledger", ["memory", "sqlite"])
def test_nothing_is_lost_at_every_few_steps(ledger: str):
    stride = EVERY or (11 if ledger == "memory" else 47)
    found = {
        step: report.finding
        for step in range(0, STEPS, stride)
        if (report := killed_at(step, ledger=ledger)).finding
    }
    assert found == {}


@pytest.mark.parametrize("call", every(4, LEDGER_CALLS))
@pytest.mark.parametrize("when", ["before", "after"])
def test_nothing_is_lost_around_any_call_of_the_ledger(when: str, call: str):
    for nth in range(6):
        blow = Blow(0.0, "ledger_death", steps=nth, seconds=0.1, call=f"{when} {call}")
        assert run(1, options=small_world(blow)).finding is None
