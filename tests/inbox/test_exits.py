"""Processes whose handlers hang for good, and that are told to stop: they end in time, and say what they left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from surehook.inbox import Inbox
from tests.inbox.house import call, message, partner

ROOT = Path(__file__).parents[2]
STATED_S = 15  # with the default of ten seconds for handlers; the program gives them 0.2
PROGRAM = "tests.inbox.programs.hanging"
pytestmark = pytest.mark.slow


@contextmanager
def hanging(path: Path, *command: str) -> Iterator[subprocess.Popen[str]]:
    """The process, once its handler hangs."""
    inbox = Inbox(f"sqlite:///{path}", [partner()])
    inbox.create_tables()
    assert inbox.receive(call(*message("evt_1"), at=inbox.clock.now())).status == 200
    inbox.close()
    process = subprocess.Popen(
        [sys.executable, "-m", *command], cwd=ROOT, env=os.environ | {"DATABASE": str(path)}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "hangs\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("deaf", 1, r"is_deaf goes on although it was cancelled(.|\n)*ended 4.2 s after the order to stop"),
        (
            "blocks",
            1,
            r"ended 4.2 s after the order to stop: .*holds_the_loop is at work on inb_\w+ for \d+ s",
        ),
        (
            "shell",
            1,
            r"ended 4.2 s after the order to stop: .*waits_for_a_command is at work on inb_\w+ for \d+ s",
        ),
        ("signals", 0, r"left behind, to be done anew: .*takes_the_signals_descriptor is at work"),
        ("forks", 0, r"left behind, to be done anew: .*ends_a_child is at work"),
        ("pooled", 1, r"left behind.*leaves_a_thread(.|\n)*ended 4.2 s after the order to stop"),
        ("thread", 0, r"left behind, to be done anew: .*sleeps is at work on inb_\w+ for \d+ s"),
    ],
)
def test_the_command_ends_in_time_whatever_hangs_and_names_it(tmp_path, name, code, said):
    command = ("surehook", "inbox", "work", f"{PROGRAM}:{name}")
    with hanging(tmp_path / "inbox.db", *command) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=STATED_S) == code
        assert process.stderr is not None
        told = process.stderr.read()
    assert re.search(said, told), told


@pytest.mark.skipif(sys.platform != "linux", reason="fills the pipe by /proc")
def test_the_command_ends_in_time_though_nobody_reads_its_stderr(tmp_path):
    with hanging(tmp_path / "inbox.db", "surehook", "inbox", "work", f"{PROGRAM}:blocks") as process:
        full = os.open(f"/proc/{process.pid}/fd/2", os.O_WRONLY | os.O_NONBLOCK)
        with suppress(BlockingIOError):
            while os.write(full, b"-"):
                pass
        os.close(full)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=STATED_S) == 1


@pytest.mark.parametrize("name", ["deaf", "blocks", "regex", "signals", "thread"])
def test_a_second_signal_ends_the_command_at_once(tmp_path, name):
    """Not asked of `shell`: while `os.system` waits, SIGINT is for its command alone."""
    with hanging(tmp_path / "inbox.db", "surehook", "inbox", "work", f"{PROGRAM}:{name}") as process:
        for number in (signal.SIGTERM, signal.SIGINT):
            process.send_signal(number)
        assert process.wait(timeout=STATED_S) in {128 + signal.SIGTERM, 128 + signal.SIGINT}
        assert process.stderr is not None
        assert "after the order to stop" not in process.stderr.read()


@pytest.mark.parametrize("name", ["deaf", "pooled", "thread"])
def test_stop_of_an_application_comes_back_in_time_and_names_what_it_left(tmp_path, name):
    """Of a handler that holds the loop nobody in it comes to call `stop`."""
    with hanging(tmp_path / "inbox.db", PROGRAM, name) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write("stop\n")
        process.stdin.flush()
        assert process.stdout.readline() == "stopped\n"
        process.kill()
        told = process.stderr.read()
    assert re.search(r"left behind, to be done anew: .* is at work on inb_\w+", told), told
    assert ("goes on although it was cancelled" in told) == (name == "deaf")
