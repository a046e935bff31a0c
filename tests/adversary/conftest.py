"""What every attack did to the customer, in one table at the end of a run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.adversary.arena import TIMED, table

FOLDER = Path(__file__).parent
FIGURES = "figures of an attack"


@pytest.fixture(scope="session", autouse=True)
def _judged_alone() -> None:
    """Refuse to judge milliseconds while other attacks take the cores: a bound that holds there or not says nothing."""
    if TIMED and int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1:
        pytest.fail(
            "milliseconds are judged one attack after another: leave out -n, or say TIMED=0", pytrace=False
        )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Deal attacks that take turns evenly among the others: side by side, few processes then wait for a turn."""
    if TIMED:
        return
    here = [place for place, item in enumerate(items) if item.path.parent == FOLDER]
    attacks = [items[place] for place in here]
    turns = [item for item in attacks if item.get_closest_marker("computing")]
    others = [item for item in attacks if not item.get_closest_marker("computing")]
    dealt = sorted(
        ((number / len(pile), item) for pile in (turns, others) for number, item in enumerate(pile)),
        key=lambda placed: placed[0],
    )
    for place, (_, item) in zip(here, dealt, strict=True):
        items[place] = item


def keep(item: pytest.Item, figures: dict[str, Any]) -> None:
    """Keep an attack's figures for the end."""
    item.user_properties.append((FIGURES, figures))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Bound beside figure, for attacks that were withstood and for those that were not."""
    reports = [*terminalreporter.stats.get("passed", []), *terminalreporter.stats.get("failed", [])]
    figures = [
        value
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in report.user_properties
        if name == FIGURES
    ]
    if not figures:
        return
    judged = "" if TIMED else ", not judged"
    terminalreporter.section(f"publishing alone and beside each attack, p95 in ms{judged}", sep="=")
    for line in table(figures):
        terminalreporter.write_line(line)
