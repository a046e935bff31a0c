"""A copy of the sources in which bugs are planted, one after the other, and hunted by processes of their own.

Python compiles a module once for each path. A copy for each bug would be compiled whole each time, which costs more than most
hunts; in one copy only what was changed is.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lab import ROOT


class PlantedCopy:
    """The sources of the package and of the laboratory under `folder`, which is laid out as the checkout is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._changes = 0
        for name in ("src/surehook", "lab"):
            shutil.copytree(
                ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "records")
            )

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

    def environment(self) -> dict[str, str]:
        """The environment of a process that imports from here."""
        return os.environ | {"PYTHONPATH": f"{self.folder / 'src'}{os.pathsep}{self.folder}"}
