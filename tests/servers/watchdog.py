"""Sweeps a run's servers away when the run ends, however it ends: the end of its stdin is the sign.

    python watchdog.py FOLDER    (stands alone: it runs without the checkout on its path)

Every process that works inside the folder is killed. Then the folder is removed; if the run did not say that all went
well (file `well`), its logs stay.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path

QUIET_S = 0.5  # nobody seen for so long: a server that somebody was just starting has shown itself
ORDERLY_S = 2.0  # PostgreSQL gives its shared memory back when it is asked to go, and not when it is killed
LOOK_S = 0.05


def working_in(folder: Path) -> list[int]:
    """The processes whose working directory is the folder or below it, oldest first."""
    inside, found = f"{folder}/", []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # gone meanwhile, or not ours to look at
            if f"{os.readlink(entry / 'cwd').removesuffix(' (deleted)')}/".startswith(inside):
                found.append(int(entry.name))
    return sorted(found)


def signal_all(folder: Path, number: signal.Signals) -> int:
    """Send a signal to all of them; how many there were."""
    pids = working_in(folder)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
    return len(pids)


def kill_all(folder: Path, quiet_s: float = 0.0) -> None:
    """Kill until none has been seen for so long; those that were just being born are found in the next look."""
    quiet_since = time.monotonic()
    while True:
        if signal_all(folder, signal.SIGKILL):
            quiet_since = time.monotonic()
        elif time.monotonic() - quiet_since >= quiet_s:
            return
        time.sleep(LOOK_S)


def quit_postgres(folder: Path) -> None:
    """Ask every postmaster for an immediate shutdown, and wait a little."""
    asked: list[int] = []
    for note in folder.glob("*/data/postmaster.pid"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            pid = int(note.read_text().splitlines()[0])
            if pid in working_in(note.parent):
                signal_all(note.parent, signal.SIGCONT)  # a frozen one hears nothing
                os.kill(pid, signal.SIGQUIT)
                asked.append(pid)
    until = time.monotonic() + ORDERLY_S
    while asked and time.monotonic() < until and set(asked) & set(working_in(folder)):
        time.sleep(LOOK_S)


def remove(folder: Path) -> None:
    """Remove the folder; all but the logs if the run did not end well."""
    if (folder / "well").exists():
        shutil.rmtree(folder, ignore_errors=True)
        return
    for path, folders, files in os.walk(folder, topdown=False):
        for name in files:
            if not name.endswith(".log"):
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(path, name))
        for name in folders:
            with contextlib.suppress(OSError):  # not empty: it has logs
                os.rmdir(os.path.join(path, name))
    with contextlib.suppress(OSError):
        folder.rmdir()


def sweep(folder: Path) -> None:
    """Kill and remove."""
    quit_postgres(folder)
    kill_all(folder, QUIET_S)
    remove(folder)


if __name__ == "__main__":
    sys.stdin.read()
    sweep(Path(sys.argv[1]))
