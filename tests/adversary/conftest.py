"""What every attack did to the customer, in one table at the end of a run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adversary.arena import TIMED, table

FIGURES = "figures of an attack"


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
