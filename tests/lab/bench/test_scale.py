"""Ratios and verdicts that `lab.bench.scale` makes of its runs; the runs themselves need servers and minutes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lab import ROOT
from lab.bench import scale


def run(
    fleet: str, number: int, speed: float, *, part: str = "parked one", lost: int = 0, product: float = 100.0
):
    return {
        "part": part, "round": number, "fleet": fleet, "mode": "single", "delivered_per_s": speed,
        "product_cpu_us": product, "database_cpu_us": 50.0, "lost": lost,
    }  # fmt: skip


def test_a_ratio_is_the_median_of_pairs_of_the_same_round():
    # The machine became three times as fast in the second round: medians of each side would say 1.5 or 0.5.
    runs = [
        run("with", 0, 90), run("without", 0, 100), run("with", 1, 300), run("without", 1, 300),
        run("with", 2, 95), run("without", 2, 100), run("other", 2, 1),
    ]  # fmt: skip
    found = scale.ratio(runs, "parked one", "single", "with", "without")
    assert (found["speed"], found["speed_last"], found["rounds"]) == (0.95, 0.95, 3)


def test_less_cpu_is_a_ratio_above_one():
    runs = [run("with", 0, 100, product=80.0), run("without", 0, 100)]
    assert scale.ratio(runs, "parked one", "single", "with", "without")["product_cpu"] == 1.25


@pytest.mark.parametrize(
    ("part", "fleet", "speed", "held"),
    [
        ("parked one", "parked_one", 0.9, True),
        ("parked one", "parked_one", 0.89, False),
        ("shapes", "split", 0.6, True),
        ("shapes", "split", 0.59, False),
        ("shapes", "broker", 0.3, True),
    ],
)
def test_what_is_asked_for_is_judged(part: str, fleet: str, speed: float, held: bool):
    ratios = [{"part": part, "fleet": fleet, "mode": "single", "of": "x", "speed": speed}]
    assert (scale.verdicts({"medians": [], "ratios": ratios}) == []) is held


def test_a_lost_delivery_of_one_run_is_told_among_medians():
    runs = [run("one", 0, 10), run("one", 1, 10, lost=1), run("one", 2, 10)]
    (line,) = scale.medians(runs)
    assert line["lost"] == 1
    assert scale.verdicts({"medians": [line], "ratios": []}) == ["one single: 1 lost"]


def test_an_unknown_part_is_refused_before_anything_starts():
    ended = subprocess.run(
        [sys.executable, "-m", "lab.bench.scale", "--part", "spilt"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2
    assert "spilt" in ended.stderr
