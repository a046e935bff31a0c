"""Plant a bug: apply a patch of `mutants/` to a copy of the package, and hunt it with worlds in a process of its own.

The patches are unified diffs with comment lines on top: what is wrong, on which ledger it lives, how many
processes it needs. Hunks are found by their lines, not their numbers, so that the package may move under them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from msgspec import Struct

import surehook

PATCHES = Path(__file__).parent / "mutants"
SEEDS = 50  # within which each planted bug must be found

_HUNT = """
import json, sys
from surehook.sim.campaign import campaign
result = campaign(
    0, int(sys.argv[1]), ledger=sys.argv[2], nodes=int(sys.argv[3]), inbox=sys.argv[4] == "yes", failures_max=1, tail=0
)
found = result.failed[0] if result.failed else None
print(json.dumps({"seeds": result.runs, "finding": found and found.finding}))
"""


class Mutant(Struct, frozen=True):
    """One planted bug."""

    name: str
    meaning: str
    ledger: str
    nodes: int
    inbox: str
    patch: str


class Hunt(Struct, frozen=True):
    """How a hunt went: `finding` None where the bug was not seen in `seeds` worlds."""

    seeds: int
    finding: str | None


def mutants() -> list[Mutant]:
    return [_read(path) for path in sorted(PATCHES.glob("*.patch"))]


def _read(path: Path) -> Mutant:
    text = path.read_text()
    comments = [line[2:] for line in text.splitlines() if line.startswith("# ")]
    said = dict(line.split(": ", 1) for line in comments[1:])
    return Mutant(path.stem, comments[0], said["ledger"], int(said["nodes"]), said.get("inbox", "no"), text)


def hunt(mutant: Mutant, folder: Path, *, seeds: int = SEEDS) -> Hunt:
    """Plant the bug in a copy of the package under `folder` and run worlds until one finds it."""
    package = folder / "surehook"
    shutil.copytree(Path(surehook.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    apply(mutant.patch, package)
    ran = subprocess.run(
        [sys.executable, "-c", _HUNT, str(seeds), mutant.ledger, str(mutant.nodes), mutant.inbox],
        env=os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ran.returncode == 0, f"the hunt itself failed:\n{ran.stderr[-2000:]}"
    return Hunt(**json.loads(ran.stdout.splitlines()[-1]))


def touched(patch: str) -> list[str]:
    """The files that a patch changes, from the package's folder."""
    return re.findall(r"^\+\+\+ b/(\S+)", patch, flags=re.MULTILINE)


def apply(patch: str, package: Path) -> None:
    """Apply a unified diff to the files under `package`. A hunk must fit in exactly one place."""
    for part, name in zip(re.split(r"^--- ", patch, flags=re.MULTILINE)[1:], touched(patch), strict=True):
        _, *hunks = re.split(r"^@@.*@@.*\n", part, flags=re.MULTILINE)
        path = package / name
        text = path.read_text()
        assert hunks, f"no hunk of {path.name} was read"
        for hunk in hunks:
            lines = hunk.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line[0] in " -")
            after = "".join(line[1:] for line in lines if line[0] in " +")
            assert text.count(before) == 1, f"a hunk of {path.name} fits {text.count(before)} times:\n{hunk}"
            text = text.replace(before, after)
        path.write_text(text)
