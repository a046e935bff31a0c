"""Bugs planted on purpose are found: a check that has never caught one proves nothing."""

from __future__ import annotations

import pytest

from tests.planted import PlantedCopy
from tests.sim.planting import SEEDS, Mutant, applied, hunt, mutants

MUTANTS = mutants()


def test_there_are_at_least_ten():
    assert len(MUTANTS) >= 10


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_fits_the_sources(mutant: Mutant):
    for name, text in applied(mutant.patch).items():
        if name.endswith(".py"):
            compile(text, name, "exec")


@pytest.mark.parametrize("name", ["inbox-answered-before-commit", "inbox-no-dedupe"])
def test_a_planted_bug_of_the_inbox_is_found_by_the_worlds_up_to_its_hint(
    name: str, planted_copy: PlantedCopy
):
    (mutant,) = (one for one in MUTANTS if one.name == name)
    found = hunt(mutant, planted_copy, seeds=mutant.world + 1)
    assert found.finding is not None


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_is_found_within_fifty_worlds(mutant: Mutant, planted_copy: PlantedCopy):
    found = hunt(mutant, planted_copy)
    assert found.finding is not None, f"{mutant.meaning} Not seen in {SEEDS} worlds."
    print(f"\n{mutant.name}: world {found.world}: {found.finding}")
