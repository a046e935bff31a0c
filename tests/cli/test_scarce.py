"""A terminal and a system that give little: no descriptors, no stdout, Ctrl-C at any moment. A sentence, never a trace."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.budget import every

SUREHOOK = (sys.executable, "-m", "surehook")


def shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """`script` run by a shell, in which `"$@"` is surehook."""
    return subprocess.run(
        ["sh", "-c", script, "sh", *SUREHOOK], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("command", every(3, ["serve --port 0", "demo"]))
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
