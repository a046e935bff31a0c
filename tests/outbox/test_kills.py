"""Whoever dies at whatever moment: what was committed arrives once and in order, and what was taken back never does."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.bench import outbox_kills


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sqlite", "postgresql", "mariadb"])
def test_application_relay_and_server_are_killed(name: str, tmp_path: Path) -> None:
    with outbox_kills.database(name, tmp_path) as url:
        found = outbox_kills.campaign(url, kills=67, seed=7, folder=tmp_path)
    assert found.held, found
    assert found.committed > 100
