"""The folder of a run: one for all processes of a `pytest -n`, so that they share their servers.

The first process makes it, starts the watchdog, and tells its children by the environment (`SERVERS_FOLDER`).
"""

from __future__ import annotations

import fcntl
import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

VARIABLE = "SERVERS_FOLDER"
SERVANT = "nobody"  # whom root becomes: PostgreSQL refuses to run as root, and no server of a test needs to

_watchdogs: list[subprocess.Popen[bytes]] = []


@cache
def servant() -> pwd.struct_passwd | None:
    """The user that servers run as, or None for ourselves."""
    return pwd.getpwnam(SERVANT) if os.geteuid() == 0 else None


@cache
def run_folder() -> Path:
    """The run's folder; made, with its watchdog, by the first process that asks."""
    if (given := os.environ.get(VARIABLE)) is not None:
        return Path(given)
    made = Path(tempfile.mkdtemp(prefix="surehook-servers-")).resolve()
    give(made)
    watchdog = Path(__file__).with_name("watchdog.py")
    command = [sys.executable, "-I", "-S", str(watchdog), str(made)]
    _watchdogs.append(subprocess.Popen(command, stdin=subprocess.PIPE, cwd="/", start_new_session=True))
    os.environ[VARIABLE] = str(made)
    return made


def end(*, well: bool) -> Path | None:
    """The run is over: let the watchdog sweep, and wait for it. Where logs were kept, or None.

    Only the process that made the folder does so; in others nothing happens.
    """
    if not _watchdogs:
        return None
    folder = run_folder()
    if well:
        (folder / "well").touch()
    watchdog = _watchdogs.pop()
    watchdog.communicate()
    run_folder.cache_clear()
    os.environ.pop(VARIABLE, None)
    return folder if folder.exists() else None


def give(path: Path) -> None:
    """Hand a path over to the user that servers run as."""
    if (user := servant()) is not None:
        os.chown(path, user.pw_uid, user.pw_gid)


def make(path: Path) -> Path:
    """A folder of the servers' user, readable by nobody else."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    give(path)
    return path


@contextmanager
def only_one(name: str) -> Iterator[None]:
    """Only one process of the run is in here at a time, by a name."""
    with (run_folder() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
