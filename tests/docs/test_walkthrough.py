"""The README's first webhook and the restore of the operations page, typed word by word into shells."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.docs.pages import examples
from tests.servers.ports import reserve

START_S = 20  # a server on a busy machine
DO_S = 30  # a terminal whose commands end by themselves
LOOK_S = 0.05

pytestmark = pytest.mark.slow


class Terminal:
    """A shell in a folder of its own, reading what the page says; its output goes to a file."""

    def __init__(self, folder: Path, name: str, text: str, port: int) -> None:
        self.output = folder / f"{name}.out"
        clean = {key: value for key, value in os.environ.items() if not key.startswith("SUREHOOK_")}
        with self.output.open("wb") as out:
            self.process = subprocess.Popen(
                ["sh", "-e", "-c", text], cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env=clean | {"SUREHOOK_PORT": str(port)}, start_new_session=True,
            )  # fmt: skip

    def text(self) -> str:
        return self.output.read_text(encoding="utf-8")

    def shows(self, words: str) -> None:
        """Wait until the words are on the screen."""
        until = time.monotonic() + START_S
        while words not in self.text():
            assert self.process.poll() is None, f"the terminal ended:\n{self.text()}"
            assert time.monotonic() < until, f"no {words!r} in\n{self.text()}"
            time.sleep(LOOK_S)

    def ends(self) -> None:
        assert self.process.wait(DO_S) == 0, self.text()

    def close(self) -> None:
        """Ctrl-C, for the shell and what runs in it."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
            try:
                self.process.wait(DO_S)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()


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
