"""What a process takes from its system at the start."""

from __future__ import annotations

import subprocess
import sys

import pytest
from msgspec.structs import replace

from surehook.core.model import NodeRow
from surehook.host import process

ASK = "import resource, sys; from surehook.host.process import take_descriptors; print(take_descriptors(), *resource.getrlimit(resource.RLIMIT_NOFILE))"


@pytest.mark.parametrize(("soft", "hard", "taken"), [(64, 512, 512), (512, 512, 512)])
def test_all_descriptors_that_are_allowed_are_taken(soft: int, hard: int, taken: int) -> None:
    told = subprocess.run(
        ["sh", "-c", f'ulimit -Sn {soft}; ulimit -Hn {hard}; exec "$0" -c "$1"', sys.executable, ASK],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout.split() == [str(taken), str(taken), str(hard)]


BOOT, ELSEWHERE = "b007 pid:[4026531836]", "b008 pid:[4026531836]"
CONTAINER = "b007 pid:[4026532201]"
NOWHERE = ("", "b007 ", " pid:[4026531836]", "b007")


def seen(boot_id: str = BOOT, *, runs: bool = False) -> process.LocalHost:
    """A process with the number 7 on a host called web, to which no other process runs, or every one."""
    return process.LocalHost(name="web", boot_id=boot_id, pid=7, runs=lambda pid: runs)


def row(boot_id: str = BOOT, *, host: str = "web", pid: int = 8) -> NodeRow:
    return NodeRow(id=b"\x01" * 16, host=host, boot_id=boot_id, pid=pid, started_at=0)


def test_a_process_that_could_be_seen_and_is_not_there_is_gone() -> None:
    assert seen().is_gone(row())
    assert not seen(runs=True).is_gone(row())
    assert seen(runs=True).is_gone(row(pid=7)), "another node with our number was an earlier process"


@pytest.mark.parametrize("pid", [7, 8])
def test_a_name_is_no_identity(pid: int) -> None:
    assert not seen().is_gone(row(ELSEWHERE, pid=pid)), (
        "a machine with our name, or ours before it was started again"
    )
    assert not seen().is_gone(row(CONTAINER, pid=pid)), "a container on our machine"
    assert not seen().is_gone(row(host="db", pid=pid)), "a copy of a running machine, with a name of its own"


@pytest.mark.parametrize("boot_id", NOWHERE)
def test_nobody_is_judged_where_boot_or_process_space_is_unknown(boot_id: str) -> None:
    assert not seen(boot_id).is_gone(row(boot_id))
    assert not seen(boot_id).is_gone(row(boot_id, pid=7))


def test_this_process_is_known_by_its_boot_and_its_space_of_numbers() -> None:
    us = process.here()
    made = us.this_node(b"\x01" * 16, now=3)
    boot, _, space = made.boot_id.partition(" ")
    assert len(boot) == 36 and space.startswith("pid:[")
    ended = subprocess.Popen(["true"])
    ended.wait()
    with subprocess.Popen(["sleep", "60"]) as lives:
        assert not us.is_gone(replace(made, pid=lives.pid))
        lives.kill()
    assert us.is_gone(replace(made, pid=ended.pid))


@pytest.mark.parametrize(
    ("allowed", "callers"), [(20_000, 4_096), (4_096, 1_984), (2_500, 625), (1_024, 256), (72, 18)]
)
def test_callers_leave_descriptors_for_deliveries_and_the_ledger(allowed: int, callers: int) -> None:
    assert process.callers_within(allowed, wanted=4_096, deliveries=2_048) == callers
