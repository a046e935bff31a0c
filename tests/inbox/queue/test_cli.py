"""`surehook inbox stats` tells what waits in front of the table as well."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from surehook.cli.main import app


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An application with an inbox of each kind, as the command line finds it."""
    (tmp_path / "queued_hooks.py").write_text(
        "from surehook.inbox import AsyncInbox, Inbox\n"
        "from tests.inbox.queue.memory import MemoryQueue\n"
        "queue = MemoryQueue()\n"
        f"inbox = Inbox('sqlite:///{tmp_path / 'inbox.db'}', queue=queue)\n"
        f"waiting = AsyncInbox('sqlite:///{tmp_path / 'inbox.db'}', queue=queue)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    import_module("queued_hooks").inbox.create_tables()
    yield "queued_hooks"
    sys.modules.pop("queued_hooks", None)


def stats(place: str, *options: str) -> Any:
    ended = CliRunner().invoke(app, ["inbox", "stats", place, *options])
    assert ended.exit_code == 0, ended.output
    return ended


@pytest.mark.parametrize("name", ["inbox", "waiting"])
def test_stats_tell_what_waits_in_the_queue(place: str, name: str) -> None:
    queue = import_module(place).queue
    queue.add(b"one")
    queue.put_aside.append((b"", ""))
    found = json.loads(stats(f"{place}:{name}", "--json").stdout)
    assert found == {"data": [], "next": None, "queue": {"waiting": 1, "aside": 1}}
    assert "1 messages wait, 1 were put aside" in stats(f"{place}:{name}").output
    queue.is_away = True
    ended = stats(f"{place}:{name}", "--json")
    assert "not known: nothing is there" in ended.output
    assert json.loads(ended.stdout) == {"data": [], "next": None}
    told = stats(f"{place}:{name}").output
    assert "the queue in front of the table could not be asked" in told
    assert "nothing waits in the table\n" in told
