"""Whole worlds: one seed is one story, and the product holds in all of them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from lab.sim import beside, owed, swarm
from lab.sim.campaign import campaign
from lab.sim.run import run
from tests.budget import every


@pytest.mark.parametrize("seed", every(4, range(16)))
def test_a_world_on_the_memory_ledger_holds(seed: int):
    report = run(seed)
    assert report.finding is None, f"{report.finding}\n{report.replay}"


@pytest.mark.parametrize("seed", every(5, range(5)))
def test_a_world_on_sqlite_holds(seed: int):
    report = run(seed, ledger="sqlite")
    assert report.finding is None, f"{report.finding}\n{report.replay}"


@pytest.mark.parametrize("seed", every(4, range(1_000, 1_004)))
def test_several_processes_on_one_ledger_hold(seed: int):
    report = run(seed, nodes=3)
    assert report.finding is None, f"{report.finding}\n{report.replay} --nodes 3"


@pytest.mark.slow
@pytest.mark.parametrize(("ledger", "first", "seeds"), [("memory", 10_000, 40), ("sqlite", 20_000, 10)])
def test_a_campaign_finds_nothing_and_meets_every_fault(ledger: str, first: int, seeds: int):
    result = campaign(first, seeds, ledger=ledger, failures_max=1)  # type: ignore[arg-type]
    assert [f"{report.finding}\n{report.replay}" for report in result.failed] == []
    assert result.never == ()


@pytest.mark.parametrize(
    ("seed", "ledger"),
    [
        (3, "memory"),
        pytest.param(7, "memory", marks=pytest.mark.slow),
        pytest.param(7, "sqlite", marks=pytest.mark.slow),
    ],
)
def test_a_seed_repeats_exactly_in_this_process_and_in_another(seed: int, ledger: str):
    digest = run(seed, ledger=ledger).digest  # type: ignore[arg-type]
    assert run(seed, ledger=ledger).digest == digest  # type: ignore[arg-type]
    code = f"from lab.sim.run import run; print(run({seed}, ledger={ledger!r}).digest)"
    for hash_seed in ("1",) if ledger == "sqlite" else ("1", "2"):
        elsewhere = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert elsewhere.stdout.strip() == digest


@pytest.mark.slow
def test_other_seeds_are_other_stories():
    assert len({run(seed).digest for seed in range(6)}) == 6


def test_one_world_in_ten_has_no_faults_and_every_fault_is_in_some_world():
    drawn = [swarm.draw(seed) for seed in range(1_000)]
    alone = {owed.OWED, beside.CALM}  # beside whom nothing else goes wrong
    worlds = [world for world in drawn if all(one.tenant not in alone for one in world.customers)]
    assert 70 <= sum(not world.faults for world in worlds) <= 130
    assert {fault for world in worlds for fault in world.faults} == set(swarm.FAULTS)


def test_a_world_without_faults_delivers_everything_at_once():
    seed = next(seed for seed in range(1_000) if not swarm.draw(seed).faults)
    report = run(seed)
    assert report.finding is None
    assert set(report.ends) <= {"delivered"}
    assert report.requests == report.deliveries


def test_the_last_lines_of_a_story_end_with_what_was_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lab.sim.receivers.Receiver._treatment", lambda self: 1 / 0)
    report = run(1, tail=5)
    assert report.finding is not None
    assert "FINDING" in report.tail[-1]
    assert len(report.tail) == 5
