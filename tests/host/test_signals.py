"""Two signals end a real process at once, whatever its loop is doing."""

from __future__ import annotations

import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from surehook.host.signals import MACHINES

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in MACHINES,
    reason="the kernel is told on Linux on x86-64 and ARM only",
)

PROGRAM = """
import asyncio, signal, sys
from surehook.host.running import ending, run

class Server:
    def stop(self):
        print("stopping", flush=True)

async def main():
    with ending(None) as stop:
        stop.of(Server())
        print("begun", flush=True)
        {work}
    return 0

sys.exit(run(main()))
"""
COMES_ROUND = "await asyncio.sleep(3600)"
STUCK = {
    "python": "while True: pass",
    "native": "3 ** (10 ** 9)",  # one call that holds the interpreter
    "comes round": COMES_ROUND,
}


def begin(work: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(work=work)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def has_handler(pid: int, number: int) -> bool:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    caught = next(line for line in lines if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("work", STUCK.values(), ids=STUCK)
def test_the_second_signal_ends_the_process_whatever_its_loop_does(work: str, number: int) -> None:
    process = begin(work)
    try:
        process.send_signal(number)
        end = time.monotonic() + 20
        while has_handler(process.pid, number):
            assert time.monotonic() < end, "the first signal did not take the handler away"
        assert process.poll() is None, "the first signal ends nothing by itself"
        process.send_signal(number)
        assert process.wait(20) == -number
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_the_first_signal_stops_in_order() -> None:
    process = begin(COMES_ROUND)
    try:
        process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        assert process.stdout.readline() == "stopping\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 128 + signal.SIGINT, "one of the other kind, since the loop came round"
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
