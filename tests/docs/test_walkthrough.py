"""The README's first webhook and the restore of the operations page, typed word by word into shells."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import examples
from tests.docs.terminal import DO_S, Terminal
from tests.servers.ports import reserve

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which `.venv/bin` is where this Python's commands are."""
    bin_folder = tmp_path / ".venv" / "bin"
    bin_folder.parent.mkdir()
    bin_folder.symlink_to(Path(sys.executable).parent)
    return tmp_path


def test_the_first_webhook_arrives_as_the_readme_says(folder: Path):
    typed = examples("README.md")
    api, receiver_port = reserve(), reserve()
    with contextlib.ExitStack() as terminals:

        def terminal(name: str) -> Terminal:
            # The ports are taken from the machine; every other word is the page's.
            opened = Terminal(folder, name, typed[name].replace("4000", str(receiver_port)), api)
            terminals.callback(opened.close)
            return opened

        terminal("server").shows("surehook listens on")
        receiver = terminal("receiver")
        receiver.shows("listening on")
        publisher = terminal("publisher")
        publisher.ends()
        assert "1 delivery" in publisher.text()
        assert "delivered" in publisher.text()
        receiver.shows("document.signed")
        assert "verified" in receiver.text()


def test_a_backup_is_restored_as_operations_says(folder: Path):
    surehook = folder / ".venv" / "bin" / "surehook"
    for command in (["migrate", "up"], ["backup", "surehook-2026-11-21.db"]):
        subprocess.run([surehook, *command], cwd=folder, check=True, capture_output=True, timeout=DO_S)
    before = (folder / "surehook-2026-11-21.db").read_bytes()
    (folder / "surehook.db").write_bytes(b"broken")
    terminal = Terminal(
        folder,
        "restore",
        f"PATH={surehook.parent}:$PATH\n" + examples("docs/operations.md")["restore"],
        reserve(),
    )
    terminal.ends()
    assert (folder / "surehook.db").read_bytes() == before
    assert (folder / "set-aside" / "surehook.db").read_bytes() == b"broken"
