"""What a process takes from its system at the start."""

from __future__ import annotations

import subprocess
import sys

import pytest
from msgspec.structs import replace

from surehook.core.model import Node
from surehook.host import process

ASK = "import resource, sys; from surehook.host.process import take_descriptors; print(take_descriptors(), *resource.getrlimit(resource.RLIMIT_NOFILE))"


@pytest.mark.parametrize(("soft", "hard", "taken"), [(64, 512, 512), (512, 512, 512)])
def test_all_descriptors_that_are_allowed_are_taken(soft: int, hard: int, taken: int) -> None:
    told = subprocess.run(
        ["sh", "-c", f'ulimit -Sn {soft}; ulimit -Hn {hard}; exec "$0" -c "$1"', sys.executable, ASK],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout.split() == [str(taken), str(taken), str(hard)]


def here(**changes: object) -> Node:
    """A node row as a process of this place would write it."""
    made = process.this_node(b"\x01" * 16, now=0)
    return replace(made, **changes)


def test_only_a_process_that_could_be_seen_and_is_not_there_is_gone() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    with subprocess.Popen(["sleep", "60"]) as lives:
        assert not process.is_gone(here(pid=lives.pid))
        lives.kill()
    assert process.is_gone(here(pid=ended.pid))
    assert process.is_gone(here(boot_id="another"))
    assert process.is_gone(here()), "another node with our pid was an earlier process"
    boot = process.boot_id().partition(" ")[0]
    assert not process.is_gone(here(pid=ended.pid, boot_id=f"{boot} pid:[1]")), "of another container"
    assert not process.is_gone(here(pid=ended.pid, host="elsewhere"))
