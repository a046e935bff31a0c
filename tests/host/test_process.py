"""What a process takes from its system at the start."""

from __future__ import annotations

import subprocess
import sys

import pytest

ASK = "import resource, sys; from surehook.host.process import take_descriptors; print(take_descriptors(), *resource.getrlimit(resource.RLIMIT_NOFILE))"


@pytest.mark.parametrize(("soft", "hard", "taken"), [(64, 512, 512), (512, 512, 512)])
def test_all_descriptors_that_are_allowed_are_taken(soft: int, hard: int, taken: int) -> None:
    told = subprocess.run(
        ["sh", "-c", f'ulimit -Sn {soft}; ulimit -Hn {hard}; exec "$0" -c "$1"', sys.executable, ASK],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout.split() == [str(taken), str(taken), str(hard)]
