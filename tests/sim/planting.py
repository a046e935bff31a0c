"""Plant a bug: apply a patch of `mutants/` to a copy of the sources, and hunt it with worlds in a process of its own.

The patches are unified diffs with comment lines on top: what is wrong, on which ledger it lives, how many processes it
needs, whether it needs a broker, and a world that finds it, which is tried first. Worlds change with the package, so that is
a hint and no more: where it fails, the hunt goes through all of them. `make mutants` hunts without hints and writes down the
first that finds it, all or those that `ONLY` names; another that finds it in a tenth of the time is the better hint. Hunks
are found by their lines, not their numbers, so that the sources may move under them. Files are named from the package's
folder, or from the checkout where they begin with `lab/`.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from lab import ROOT
from lab.sim.campaign import cores
from tests.planted import PlantedCopy

PATCHES = Path(__file__).parent / "mutants"
SEEDS = 50  # within which each planted bug must be found

_HUNT = """
import json, sys
from lab.sim.campaign import campaign
seeds, hint = int(sys.argv[1]), int(sys.argv[2])
found = None
for first, count in ((hint, 1), (0, seeds)) if 0 <= hint < seeds else ((0, seeds),):
    result = campaign(
        first, count, ledger=sys.argv[3], nodes=int(sys.argv[4]), inbox=sys.argv[5] == "yes",
        broker=sys.argv[6] == "yes", failures_max=1, tail=0,
    )
    if result.failed:
        found = result.failed[0]
        break
print(json.dumps({"world": found and found.seed, "finding": found and found.finding}))
"""


class Mutant(Struct, frozen=True):
    """One planted bug."""

    name: str
    meaning: str
    ledger: str
    nodes: int
    inbox: str
    patch: str
    world: int = -1  # that finds it, or did
    broker: str = "no"


class Hunt(Struct, frozen=True):
    """How a hunt went: both None where the bug was not seen."""

    world: int | None
    finding: str | None


def mutants() -> list[Mutant]:
    return [_read(path) for path in sorted(PATCHES.glob("*.patch"))]


def _read(path: Path) -> Mutant:
    text = path.read_text()
    comments = [line[2:] for line in text.splitlines() if line.startswith("# ")]
    said = dict(line.split(": ", 1) for line in comments[1:])
    world = int(said.get("world", "-1"))
    return Mutant(
        path.stem,
        comments[0],
        said["ledger"],
        int(said["nodes"]),
        said.get("inbox", "no"),
        text,
        world,
        said.get("broker", "no"),
    )


def hunt(mutant: Mutant, copy: PlantedCopy, *, seeds: int = SEEDS, hinted: bool = True) -> Hunt:
    """Plant the bug in a copy of the sources and run worlds from 0 on until one finds it."""
    hint = mutant.world if hinted else -1
    told = (
        str(seeds), str(hint), mutant.ledger, str(mutant.nodes), mutant.inbox, mutant.broker,
    )  # fmt: skip
    with copy.changed(applied(mutant.patch)):
        ran = copy.run(_HUNT, *told, folder=copy.folder, seconds=600)
    assert ran.returncode == 0, f"the hunt itself failed:\n{ran.stderr[-2000:]}"
    return Hunt(**json.loads(ran.stdout.splitlines()[-1]))


def touched(patch: str) -> list[str]:
    """The files that a patch changes, from the checkout."""
    named = re.findall(r"^\+\+\+ b/(\S+)", patch, flags=re.MULTILINE)
    return [name if name.startswith("lab/") else f"src/surehook/{name}" for name in named]


def applied(patch: str) -> dict[str, str]:
    """Make the texts, by name, that a unified diff makes of the files of the checkout. A hunk must fit in exactly one place."""
    texts = {}
    for part, name in zip(re.split(r"^--- ", patch, flags=re.MULTILINE)[1:], touched(patch), strict=True):
        _, *hunks = re.split(r"^@@.*@@.*\n", part, flags=re.MULTILINE)
        text = (ROOT / name).read_text()
        assert hunks, f"no hunk of {name} was read"
        for hunk in hunks:
            lines = hunk.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line[0] in " -")
            after = "".join(line[1:] for line in lines if line[0] in " +")
            assert text.count(before) == 1, f"a hunk of {name} fits {text.count(before)} times:\n{hunk}"
            text = text.replace(before, after)
        texts[name] = text
    return texts


def main(args: list[str]) -> int:
    """Hunt planted bugs from world 0 on, all or those named, and write down which world found each."""
    asked = argparse.ArgumentParser(
        prog="python -m lab mutants", description="Planted bugs, hunted by worlds."
    )
    asked.add_argument("only", nargs="*", metavar="NAME", help="of a patch in tests/sim/mutants (all)")
    only = asked.parse_args(args).only
    chosen = [mutant for mutant in mutants() if not only or mutant.name in only]
    if unknown := set(only) - {mutant.name for mutant in chosen}:
        print(f"no planted bug is named {', '.join(sorted(unknown))}")
        return 2
    missed = 0
    with ThreadPoolExecutor(cores()) as pool:
        hunts = pool.map(_hunted, chosen)
        for mutant, found in zip(chosen, hunts, strict=True):
            missed += found.world is None
            _write_down(mutant, found)
    print(f"{missed} not found within {SEEDS} worlds")
    return 1 if missed else 0


def _hunted(mutant: Mutant) -> Hunt:
    with tempfile.TemporaryDirectory() as folder:
        copy = PlantedCopy(Path(folder))
        with closing(copy):
            return hunt(mutant, copy, hinted=False)


def _write_down(mutant: Mutant, found: Hunt) -> None:
    print(f"{mutant.name:32} world {found.world}: {found.finding}", flush=True)
    lines = [line for line in mutant.patch.splitlines(keepends=True) if not line.startswith("# world: ")]
    at = next(number for number, line in enumerate(lines) if not line.startswith("# "))
    hint = [] if found.world is None else [f"# world: {found.world}\n"]
    (PATCHES / f"{mutant.name}.patch").write_text("".join(lines[:at] + hint + lines[at:]))
