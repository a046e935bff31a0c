"""Worlds with an inbox at the other end: both halves crash, and every event takes effect once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from lab.__main__ import run as command
from lab.sim.campaign import MUST_FIRE_INBOX, campaign
from lab.sim.inbox.draw import draw
from lab.sim.inbox.plan import FAULTS
from lab.sim.run import run
from tests.budget import every


@pytest.mark.parametrize("seed", every(5, range(10)))
def test_a_world_of_both_halves_holds(seed: int):
    report = run(seed, inbox=True)
    assert report.finding is None, f"{report.finding}\n{report.replay}"
    assert report.applied > 0


@pytest.mark.slow
def test_a_campaign_of_both_halves_finds_nothing_and_meets_every_fault():
    result = campaign(30_000, 120, inbox=True, failures_max=1)
    assert [f"{report.finding}\n{report.replay}" for report in result.failed] == []
    assert result.never == ()
    assert set(MUST_FIRE_INBOX) <= set(result.counts)


@pytest.mark.slow
def test_a_seed_repeats_exactly_in_another_process():
    digest = run(21, inbox=True).digest
    code = "from lab.sim.run import run; print(run(21, inbox=True).digest)"
    elsewhere = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert elsewhere.stdout.strip() == digest


def test_every_fault_and_every_order_is_in_some_world():
    plans = [draw(seed)[1] for seed in range(400)]
    assert {fault for one in plans for fault in one.faults} == set(FAULTS)
    assert {(one.order.mode, one.order.then, one.patient) for one in plans} == {
        ("strict", "refuse", True),
        ("strict", "refuse", False),
        ("buffer", "skip", True),
        ("buffer", "skip", False),
        ("buffer", "refuse", False),
    }
    assert all(one.exact == (one.patient or one.order.then == "refuse") for one in plans)
    assert {one.narrow for one in plans} == {True, False}
    assert 20 <= sum(not one.faults for one in plans) <= 70


def test_the_command_plays_both_halves_and_keeps_the_figures(tmp_path, capsys):
    assert command(["sim", "--inbox", "--seeds", "1", "--record", str(tmp_path / "kept.json")]) == 0
    assert capsys.readouterr().out.startswith("sim: worlds=1 failed=0 events=")
    assert '"findings": []' in (tmp_path / "kept.json").read_text()


def test_a_finding_is_one_line_to_replay(monkeypatch, capsys):
    monkeypatch.setattr(
        "surehook.inbox.result_policy.ResultPolicy.succeeded",
        lambda self, run, called: self.end(run, "ignored"),
    )
    assert command(["sim", "--inbox", "--seed", "3", "--seeds", "1"]) == 1
    assert "replay: python -m lab sim --seed 3 --inbox --trace" in capsys.readouterr().out
