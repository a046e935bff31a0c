"""Faults on real processes, again and again: kill -9, signals, full disks, frozen processes, lost servers.

    python -m lab faults [--runs 1] [--seed 1] [--only fleet | --only kill9,node-kill] [--short] [--record FILE]

Each play of a fault has a seed of its own and judges itself; what it saw is added up. One run is the short form, as is
each with --short; with more, each takes its longer form. `alone` are the faults of one server on SQLite, `fleet` those of
several nodes and of the PostgreSQL, RabbitMQ and Redis that they share, one at a time. Of these several runs are played
in one fleet, one after another: each fault is judged by itself, and where one does not hold, all of its fleet have
failed. Prints one JSON document on stdout (and into FILE) and a table on stderr. Status 1 if a promise did not hold; a
fault that this machine does not allow is skipped, with its reason, and where SERVICES=required, a missing server fails.
"""
# ruff: noqa: T201 (a program that prints)

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lab.bench.figures import percentile, spread
from tests.e2e.faults.listed import FAULTS, GROUPS, P99_S
from tests.e2e.faults.place import Impossible, Place
from tests.servers import folder, missing

SIDE_BY_SIDE = 2  # most of a fault is waiting; more of them would starve each other of two cores
SUMMED = (
    "accepted", "lost", "duplicated", "refused", "unanswered", "kills", "events", "copied", "faults",
    "cut_accept", "cut_record", "cut_change", "cut_everything",
)  # fmt: skip
TOGETHER = 5  # runs in one fleet, whose start takes longer than most faults
FRAMES = 6  # of a failure's trace, innermost last


def play(name: str, seed: int, *, long: bool, rounds: int = 1) -> dict[str, Any]:
    """One play of one fault, of so many runs: whether it passed, why not, what it saw, and how long it took."""
    began = time.monotonic()
    result: dict[str, Any] = {
        "seed": seed,
        "runs": rounds,
        "passed": True,
        "skipped": None,
        "why": None,
        "figures": {},
    }
    with tempfile.TemporaryDirectory(prefix="surehook-fault-") as folder:
        try:
            result["figures"] = FAULTS[name](Place(Path(folder), seed=seed, long=long, rounds=rounds))
        except Impossible as why:
            result["skipped"] = str(why)
        except Exception as error:  # whatever it is, the other faults go on, and this one has failed
            trace = "".join(traceback.format_exception(error)[-FRAMES:])
            result.update(passed=False, why=f"{type(error).__name__}: {error}"[:2_000], trace=trace[-4_000:])
    result["seconds"] = round(time.monotonic() - began, 1)
    return result


def added(runs: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The figures of many runs: counts are summed, times are the longest, lists are joined, words are counted."""
    found: dict[str, Any] = {}
    for figures in (run["figures"] for run in runs):
        for key, value in figures.items():
            if isinstance(value, str):
                words = found.setdefault(key, {})
                words[value] = words.get(value, 0) + 1
            elif isinstance(value, list):
                found.setdefault(key, []).extend(value)
            elif key in SUMMED:
                found[key] = found.get(key, 0) + value
            else:
                found[key] = max(found.get(key, value), value)
    return found


def summary(name: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """One line of the document."""
    figures = added(runs)
    slow = [
        f"p99 of {key} is {p99} s, of at most {limit} s"
        for key, limit in P99_S.items()
        if (p99 := percentile(sorted(figures.get(key, [])), 0.99)) is not None and p99 > limit
    ]
    skipped = next((run["skipped"] for run in runs if run["skipped"] is not None), None)
    return {
        "fault": name,
        "promise": " ".join((FAULTS[name].__doc__ or "").split()),
        "runs": sum(run["runs"] for run in runs),
        "passed": sum(run["runs"] for run in runs if run["passed"] and run["skipped"] is None),
        "skipped": skipped,
        "failed": [
            {key: run[key] for key in ("seed", "runs", "why", "trace")} for run in runs if not run["passed"]
        ],
        "too_slow": slow,
        "seconds": round(sum(run["seconds"] for run in runs), 1),
        "figures": {key: spread(of) if isinstance(of, list) else of for key, of in figures.items()},
    }


def told_of(value: Any) -> str:
    """A figure in few words: of a spread its middle, its p99 and its largest."""
    return (
        f"{value['p50']}/{value['p99']}/{value['max']}"
        if isinstance(value, dict) and "p99" in value
        else str(value)
    )


def table(lines: list[dict[str, Any]]) -> str:
    """The document for people."""
    rows = []
    for line in lines:
        verdict = "FAILED" if line["failed"] or line["too_slow"] else "skipped" if line["skipped"] else "held"
        figures = "  ".join(f"{key}={told_of(value)}" for key, value in line["figures"].items())
        told = line["skipped"] or figures
        rows.append(
            f"{line['fault']:<30} {line['passed']:>4}/{line['runs']:<4} {verdict:<8} {line['seconds']:>7.1f} s  {told}"
        )
        rows += [f"    seed {each['seed']}: {each['why']}" for each in line["failed"]]
        rows += [f"    {each}" for each in line["too_slow"]]
    return "\n".join(rows)


def named(only: str) -> list[str]:
    """The faults that a list of names and groups means; nothing means all. KeyError for what is not known."""
    names = [name for word in only.split(",") if word for name in GROUPS.get(word, [word.replace("_", "-")])]
    for name in names:
        FAULTS[name]
    return names or list(FAULTS)


def dealt(runs: int, most: int) -> list[int]:
    """So many runs in as few parts as have at most so many."""
    return [min(most, runs - done) for done in range(0, runs, most)]


def campaign(chosen: argparse.Namespace, names: list[str]) -> dict[str, Any]:
    """Play all runs: those of one server side by side, then the fleets one at a time, which need both cores."""

    long = chosen.runs > 1 and not chosen.short

    def one(place: tuple[str, int], rounds: int = 1) -> tuple[str, dict[str, Any]]:
        name, seed = place
        result = play(name, seed, long=long, rounds=rounds)
        words = result["skipped"] or result["why"] or "held"
        told = f"{name} (seed {seed}, {rounds} runs)" if rounds > 1 else f"{name} (seed {seed})"
        print(f"{told}: {words} ({result['seconds']} s)", file=sys.stderr, flush=True)
        return name, result

    began = time.monotonic()
    seeds = range(chosen.seed, chosen.seed + chosen.runs)
    alone = [(name, seed) for seed in seeds for name in names if name not in GROUPS["fleet"]]
    with ThreadPoolExecutor(chosen.side_by_side) as pool:
        results = list(pool.map(one, sorted(alone, key=lambda place: place[0] != "freeze")))
    fleets = [name for name in names if name in GROUPS["fleet"]]
    for seed, rounds in enumerate(dealt(chosen.runs, TOGETHER), chosen.seed):
        results += [one((name, seed), rounds) for name in fleets]
    lines = [summary(name, [result for of, result in results if of == name]) for name in names]
    return {
        "faults": lines,
        "runs": chosen.runs,
        "seed": chosen.seed,
        "machine": {
            "cores": os.cpu_count(),
            "system": platform.platform(),
            "python": platform.python_version(),
        },
        "passed": not any(line["failed"] or line["too_slow"] for line in lines),
        "seconds": round(time.monotonic() - began, 1),
    }


def main(args: list[str]) -> int:
    """Run the campaign and print it."""
    options = argparse.ArgumentParser(prog="python -m lab faults", description=__doc__)
    options.add_argument("--runs", type=int, default=1, help="runs of each fault")
    options.add_argument("--seed", type=int, default=1, help="seed of the first run; the next has the next")
    options.add_argument("--only", default="", help="faults or groups by name, with commas between")
    options.add_argument("--short", action="store_true", help="the short form, however many runs")
    options.add_argument(
        "--side-by-side", type=int, default=SIDE_BY_SIDE, help="faults of one server at a time"
    )
    options.add_argument("--record", type=Path, help="a file for the document")
    chosen = options.parse_args(args)
    try:
        names = named(chosen.only)
    except KeyError as unknown:
        options.error(f"no such fault: {unknown}; known: {', '.join([*GROUPS, *FAULTS])}")
    absent = missing()
    if absent and os.environ.get("SERVICES") == "required":
        options.error(f"not installed: {', '.join(absent)}; `make services` installs them")
    passed = False
    try:
        document = campaign(chosen, names)
        passed = document["passed"]
    finally:
        kept = folder.end(well=passed)
    text = json.dumps(document, indent=2)
    print(text)
    if chosen.record is not None:
        chosen.record.write_text(text + "\n")
    verdict = "all held" if passed else f"FAILED (logs: {kept})"
    print(f"\n{table(document['faults'])}\n\n{verdict} in {document['seconds']} s", file=sys.stderr)
    return 0 if passed else 1
