"""A process whose loop is stuck in native code, as a real process."""

from __future__ import annotations

import signal
import subprocess
import sys

STUCK = """
import asyncio
from surehook.host.watchdog import watched

async def main():
    with watched(0.3, 0.05):
        await asyncio.sleep(0.2)
        print("begun", flush=True)
        {work}
    print("ended", flush=True)

asyncio.run(main())
"""


def run(work: str) -> subprocess.CompletedProcess[str]:
    program = STUCK.format(work=work)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )


def test_a_loop_that_is_held_by_native_code_ends_the_process_and_says_where() -> None:
    # One call, during which no other Python runs: no handler of a signal does.
    ended = run("3 ** (10 ** 8)")

    assert (ended.returncode, ended.stdout) == (-signal.SIGPROF, "begun\n")
    assert "in main" in ended.stderr


def test_a_loop_that_works_and_comes_round_is_left_alone() -> None:
    lines = (
        "import time",
        "end = time.process_time() + 1.0",
        "while time.process_time() < end:",
        "    sum(range(20_000))",
        "    await asyncio.sleep(0)",
    )

    ended = run("\n        ".join(lines))

    assert (ended.returncode, ended.stdout) == (0, "begun\nended\n"), ended.stderr
