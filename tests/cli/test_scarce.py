"""A terminal and a system that give little: no descriptors, no stdout, Ctrl-C at any moment. A sentence, never a trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.budget import every
from tests.e2e.calling import until

SUREHOOK = (sys.executable, "-m", "surehook")


def shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """`script` run by a shell, in which `"$@"` is surehook."""
    return subprocess.run(
        ["sh", "-c", script, "sh", *SUREHOOK], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("command", every(3, ["serve --port 0", "demo", "bench idle"]))
def test_too_few_open_files_are_told_before_anything_fails_for_them(command: str, tmp_path: Path) -> None:
    ran = shell(f'ulimit -n 20; exec "$@" {command}', tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: ulimit -n: 20 open files are allowed, and a server needs 64")
    assert "Traceback" not in ran.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&- <&-"])
def test_who_closes_the_standard_streams_wants_no_words(closed: str, tmp_path: Path) -> None:
    ran = shell(f'exec "$@" version {closed}', tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert bool(ran.stdout) is (closed == "2>&-")


def test_a_file_is_never_opened_in_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    """The ledger's file had the number of standard output."""
    shows = """
import os
from surehook.cli.main import run
run(["version"])
number = os.open("shows.py", os.O_RDONLY)
open("number", "w").write(str(number))
"""
    (tmp_path / "shows.py").write_text(shows)
    ran = subprocess.run(
        ["sh", "-c", 'exec "$@" >&- 2>&- <&-', "sh", sys.executable, "shows.py"], cwd=tmp_path, check=False
    )
    assert ran.returncode == 0
    assert int((tmp_path / "number").read_text()) > 2


def catches(process: str) -> bool:
    """Whether Ctrl-C would be an exception there: the interpreter has come so far."""
    status = Path(f"/proc/{process}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGINT - 1) & 1)


@pytest.mark.parametrize(("command", "processes"), [("bench throughput", 1), ("sim --seeds 400 --jobs 2", 2)])
def test_ctrl_c_while_processes_start_is_no_trace_of_theirs(
    command: str, processes: int, tmp_path: Path
) -> None:
    """A terminal sends it to every process of the command."""
    began = subprocess.Popen(
        [*SUREHOOK, *command.split()],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    with began:
        children = Path(f"/proc/{began.pid}/task/{began.pid}/children")
        until(lambda: sum(map(catches, children.read_text().split())) >= processes, "processes have begun")
        os.killpg(began.pid, signal.SIGINT)
        told, _ = began.communicate(timeout=30)
    assert (began.returncode, "Traceback" in told) == (130, False), told
