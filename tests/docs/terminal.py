"""A shell that types what a page says."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

START_S = 20  # a server on a busy machine
DO_S = 30  # a terminal whose commands end by themselves
LOOK_S = 0.05


def wait_until(holds: Callable[[], bool], seconds: float, failed: Callable[[], str]) -> None:
    """Look again and again until it holds; after so long `failed` says what is wrong."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, failed()
        time.sleep(LOOK_S)


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

        def shown() -> bool:
            found = words in self.text()
            assert found or self.process.poll() is None, f"the terminal ended:\n{self.text()}"
            return found

        wait_until(shown, START_S, lambda: f"no {words!r} in\n{self.text()}")

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

    def kill(self) -> None:
        """kill -9 of the shell and of what runs in it."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
