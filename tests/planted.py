"""A copy of the sources in which bugs are planted, one after the other, and hunted by processes of their own.

Python compiles a module once for each path. A copy for each bug would be compiled whole each time, which costs more than most
hunts; in one copy only what was changed is. And libraries are loaded once, in a process that becomes all those that hunt.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lab import ROOT

# What both kinds of hunts load before they come to the copy.
LIBRARIES = (
    "alembic.command", "anyio.pytest_plugin", "asyncio", "cryptography.x509", "hypothesis", "msgspec.json", "pytest",
    "pytest_asyncio.plugin", "sqlalchemy.dialects.sqlite", "sqlalchemy.ext.asyncio", "xdist.plugin",
)  # fmt: skip


class PlantedCopy:
    """The sources of the package and of the laboratory under `folder`, which is laid out as the checkout is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._changes = 0
        for name in ("src/surehook", "lab"):
            shutil.copytree(
                ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "records")
            )
        warm = [sys.executable, str(Path(__file__).with_name("warm.py")), *LIBRARIES]
        self._warm = subprocess.Popen(warm, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def close(self) -> None:
        """End the process that becomes others."""
        self._warm.communicate()

    @contextmanager
    def changed(self, texts: Mapping[str, str]) -> Iterator[None]:
        """Let files, named from the checkout, have other texts for a while."""
        try:
            for name, text in texts.items():
                self._write(name, text)
            yield
        finally:
            for name in texts:
                shutil.copy2(ROOT / name, self.folder / name)

    def _write(self, name: str, text: str) -> None:
        # What is compiled goes by a file's size and second: no two texts of one name may share both.
        self._changes += 1
        path = self.folder / name
        before = (ROOT / name).stat()
        path.write_text(text)
        os.utime(path, (before.st_atime, before.st_mtime - self._changes))

    def run(self, code: str, *arguments: str, folder: Path, seconds: int) -> subprocess.CompletedProcess[str]:
        """Run a process that imports from here, as `python -c code arguments` would in a folder."""
        assert self._warm.stdin is not None and self._warm.stdout is not None
        out, err = self.folder / "out", self.folder / "err"
        environment = os.environ | {"PYTHONPATH": f"{self.folder / 'src'}{os.pathsep}{self.folder}"}
        asked = {
            "code": code, "arguments": arguments, "folder": str(folder), "seconds": seconds,
            "out": str(out), "err": str(err), "environment": environment,
        }  # fmt: skip
        self._warm.stdin.write(f"{json.dumps(asked)}\n")
        self._warm.stdin.flush()
        told = self._warm.stdout.readline()
        assert told, "the process that becomes others has ended: what it said stands above"
        status = int(told)
        assert status >= 0, f"ended by signal {-status}, of {seconds} seconds:\n{err.read_text()[-2_000:]}"
        return subprocess.CompletedProcess(arguments, status, out.read_text(), err.read_text())
