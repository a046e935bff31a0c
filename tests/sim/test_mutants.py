"""Bugs planted on purpose are found: a check that has never caught one proves nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lab import ROOT
from tests.sim.planting import SEEDS, Mutant, apply, hunt, mutants, touched

MUTANTS = mutants()


def test_there_are_at_least_ten():
    assert len(MUTANTS) >= 10


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_fits_the_sources(mutant: Mutant, tmp_path: Path):
    for name in touched(mutant.patch):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    apply(mutant.patch, tmp_path)
    for path in tmp_path.rglob("*.py"):
        compile(path.read_text(), str(path), "exec")


@pytest.mark.parametrize("name", ["inbox-answered-before-commit", "inbox-no-dedupe"])
def test_a_planted_bug_of_the_inbox_is_found_by_the_worlds_up_to_the_one_that_found_it_last(
    name: str, tmp_path: Path
):
    (mutant,) = (one for one in MUTANTS if one.name == name)
    found = hunt(mutant, tmp_path, seeds=mutant.world + 1)
    assert found.finding is not None


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_is_found_within_fifty_worlds(mutant: Mutant, tmp_path: Path):
    found = hunt(mutant, tmp_path)
    assert found.finding is not None, f"{mutant.meaning} Not seen in {SEEDS} worlds."
    print(f"\n{mutant.name}: world {found.world}: {found.finding}")
