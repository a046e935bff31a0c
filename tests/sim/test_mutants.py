"""Bugs planted on purpose are found: a check that has never caught one proves nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import surehook
from tests.sim.planting import SEEDS, Mutant, apply, hunt, mutants

MUTANTS = mutants()


def test_there_are_at_least_ten():
    assert len(MUTANTS) >= 10


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_fits_the_package(mutant: Mutant, tmp_path: Path):
    package = tmp_path / "surehook"
    shutil.copytree(Path(surehook.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    apply(mutant.patch, package)
    for path in package.rglob("*.py"):
        compile(path.read_text(), str(path), "exec")


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_is_found_within_fifty_worlds(mutant: Mutant, tmp_path: Path):
    found = hunt(mutant, tmp_path)
    assert found.finding is not None, f"{mutant.meaning} Not seen in {SEEDS} worlds."
    print(f"\n{mutant.name}: world {found.seeds}: {found.finding}")
