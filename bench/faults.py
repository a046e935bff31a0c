"""Faults on real server processes, again and again: kill -9, signals, full disks, frozen processes, bad files.

    python bench/faults.py [--runs 1] [--seed 1] [--only kill9,freeze] [--side-by-side 2]

Each run of a fault has a seed of its own and judges itself; what it saw is added up. One run is the short form
(under 90 s on two cores); with more, each takes its longer form. Prints one JSON document on stdout and a table on
stderr. Status 1 if a promise did not hold; a fault that this machine does not allow is skipped, with its reason.
"""
# ruff: noqa: T201, E402 (a program that prints, run from its file)

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.e2e.faults.listed import FAULTS
from tests.e2e.faults.place import Impossible, Place

SIDE_BY_SIDE = 2  # most of a fault is waiting; more of them would starve each other of two cores
SUMMED = ("accepted", "lost", "duplicated", "refused", "unanswered", "kills", "events", "copied")
FRAMES = 6  # of a failure's trace, innermost last


def play(name: str, seed: int, *, long: bool) -> dict[str, Any]:
    """One run of one fault: whether it passed, why not, what it saw, and how long it took."""
    began = time.monotonic()
    result: dict[str, Any] = {"seed": seed, "passed": True, "skipped": None, "why": None, "figures": {}}
    with tempfile.TemporaryDirectory(prefix="surehook-fault-") as folder:
        try:
            result["figures"] = FAULTS[name](Place(Path(folder), seed=seed, long=long))
        except Impossible as why:
            result["skipped"] = str(why)
        except Exception as error:  # whatever it is, the other faults go on, and this one has failed
            trace = "".join(traceback.format_exception(error)[-FRAMES:])
            result.update(passed=False, why=f"{type(error).__name__}: {error}"[:2_000], trace=trace[-4_000:])
    result["seconds"] = round(time.monotonic() - began, 1)
    return result


def added(runs: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The figures of many runs: counts are summed, times are the longest, words are counted."""
    found: dict[str, Any] = {}
    for figures in (run["figures"] for run in runs):
        for key, value in figures.items():
            if isinstance(value, str):
                words = found.setdefault(key, {})
                words[value] = words.get(value, 0) + 1
            elif key in SUMMED:
                found[key] = found.get(key, 0) + value
            else:
                found[key] = max(found.get(key, value), value)
    return found


def summary(name: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """One line of the document."""
    skipped = next((run["skipped"] for run in runs if run["skipped"] is not None), None)
    return {
        "fault": name,
        "promise": " ".join((FAULTS[name].__doc__ or "").split()),
        "runs": len(runs),
        "passed": sum(run["passed"] and run["skipped"] is None for run in runs),
        "skipped": skipped,
        "failed": [{key: run[key] for key in ("seed", "why", "trace")} for run in runs if not run["passed"]],
        "seconds": round(sum(run["seconds"] for run in runs), 1),
        "figures": added(runs),
    }


def table(lines: list[dict[str, Any]]) -> str:
    """The document for people."""
    rows = []
    for line in lines:
        verdict = "FAILED" if line["failed"] else "skipped" if line["skipped"] else "held"
        figures = "  ".join(f"{key}={value}" for key, value in line["figures"].items())
        told = line["skipped"] or figures
        rows.append(
            f"{line['fault']:<30} {line['passed']:>4}/{line['runs']:<4} {verdict:<8} {line['seconds']:>7.1f} s  {told}"
        )
        rows += [f"    seed {each['seed']}: {each['why']}" for each in line["failed"]]
    return "\n".join(rows)


def main() -> None:
    """Run the campaign and print it."""
    options = argparse.ArgumentParser(prog="python bench/faults.py", description=__doc__)
    options.add_argument("--runs", type=int, default=1, help="runs of each fault")
    options.add_argument("--seed", type=int, default=1, help="seed of the first run; the next has the next")
    options.add_argument("--only", default="", help="faults by name, with commas between")
    options.add_argument("--side-by-side", type=int, default=SIDE_BY_SIDE, help="faults at a time")
    chosen = options.parse_args()
    names = [name for name in chosen.only.split(",") if name] or list(FAULTS)
    if unknown := [name for name in names if name not in FAULTS]:
        options.error(f"no such fault: {', '.join(unknown)}; known: {', '.join(FAULTS)}")
    began = time.monotonic()
    places = [(name, seed) for seed in range(chosen.seed, chosen.seed + chosen.runs) for name in names]

    def one(place: tuple[str, int]) -> tuple[str, dict[str, Any]]:
        name, seed = place
        result = play(name, seed, long=chosen.runs > 1)
        words = result["skipped"] or result["why"] or "held"
        print(f"{name} (seed {seed}): {words} ({result['seconds']} s)", file=sys.stderr, flush=True)
        return name, result

    with ThreadPoolExecutor(chosen.side_by_side) as pool:
        results = list(pool.map(one, sorted(places, key=lambda place: place[0] != "freeze")))
    lines = [summary(name, [result for of, result in results if of == name]) for name in names]
    passed = not any(line["failed"] for line in lines)
    document = {
        "faults": lines, "runs": chosen.runs, "seed": chosen.seed, "passed": passed,
        "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip
    print(json.dumps(document, indent=2))
    print(
        f"\n{table(lines)}\n\n{'all held' if passed else 'FAILED'} in {document['seconds']} s",
        file=sys.stderr,
    )
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
