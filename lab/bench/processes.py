"""Facts of the kernel about a process and everything below it, and the start of the benches' own processes."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

from lab import ROOT

TICKS = os.sysconf("SC_CLK_TCK")
PROC = pathlib.Path("/proc")
STOP_S = 15.0  # a child that has not ended by then is killed; the server's own grace time is 10 s


def _stats() -> dict[int, tuple[int, float]]:
    """Parent and CPU seconds (with those of reaped children) of every process."""
    found: dict[int, tuple[int, float]] = {}
    for stat in PROC.glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue  # it ended while we looked
        fields = text[text.rindex(")") + 2 :].split()
        found[int(stat.parent.name)] = (int(fields[1]), sum(map(int, fields[11:15])) / TICKS)
    return found


def tree(root: int) -> dict[int, float]:
    """CPU seconds by process, for `root` and all its descendants."""
    stats = _stats()
    mine = {root} & stats.keys()
    while True:
        more = {pid for pid, (parent, _) in stats.items() if parent in mine} - mine
        if not more:
            return {pid: stats[pid][1] for pid in mine}
        mine |= more


def cpu_seconds(root: int) -> float:
    """User and system time of the whole tree."""
    return sum(tree(root).values())


def memory_mb(root: int) -> tuple[float, float]:
    """Resident memory of the tree now, and the sum of its processes' peaks, in MiB."""
    now = peak = 0
    for pid in tree(root):
        with contextlib.suppress(OSError):
            for line in (PROC / str(pid) / "status").read_text().splitlines():
                if line.startswith("VmRSS:"):
                    now += int(line.split()[1])
                elif line.startswith("VmHWM:"):
                    peak += int(line.split()[1])
    return round(now / 1024, 1), round(peak / 1024, 1)


def reset_peak(root: int) -> None:
    """Begin the peaks of the tree's memory anew, where the kernel allows it."""
    for pid in tree(root):
        with contextlib.suppress(OSError):
            (PROC / str(pid) / "clear_refs").write_text("5")


def bench_process(module: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start one of the benches' own processes; the end of its stdin is its order to stop."""
    return subprocess.Popen(
        [sys.executable, "-m", f"lab.bench.{module}", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=plain_environment(),
        start_new_session=True,  # Ctrl-C in the terminal is for the bench, which ends its processes
    )


def plain_environment() -> dict[str, str]:
    """This environment without settings of a server and without proxies, which nothing here may use."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("SUREHOOK_") and not name.lower().endswith("_proxy")
    }


@contextlib.contextmanager
def ending(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Whatever happens inside, the process is gone and its pipes are closed afterwards."""
    try:
        yield process
    finally:
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
