"""`python -m lab sim`: worlds from seeds; a failing one is one line to replay."""

from __future__ import annotations

import argparse
import sys
from json import dumps as render
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surehook import __version__
from surehook.cli.output import document, line, note

if TYPE_CHECKING:
    from lab.sim.campaign import Campaign
    from lab.sim.run import Report

LINE_EVERY = 100  # worlds, where there is no terminal to redraw
MANY = 20  # worlds, for which it pays to begin processes
TAIL = 40  # of a failing world's last lines shown; --trace shows up to 2,000


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="python -m lab sim",
        description="Run simulated worlds: crashes, clock steps, bad receivers. Exit code 1 if something was found.",
    )
    made.add_argument("--seed", type=int, help="the first seed (0)")
    made.add_argument("--seeds", type=_count, help="how many (100, or 1 with --seed or --trace)")
    made.add_argument("--ledger", choices=("memory", "sqlite"), default="memory")
    made.add_argument(
        "--nodes", type=int, choices=range(1, 5), default=1, help="processes that may share the ledger (memory only)"
    )  # fmt: skip
    made.add_argument(
        "--broker", action="store_true", help="ready work goes through a broker in trouble (memory only)"
    )
    made.add_argument(
        "--inbox", action="store_true", help="the receiver has an inbox, which is in trouble as well (memory only)"
    )  # fmt: skip
    made.add_argument(
        "--jobs", type=_count, help=f"processes that play them (one a core from {MANY} worlds on)"
    )
    made.add_argument("--record", type=Path, help="write the figures to this file, JSON")
    made.add_argument("--trace", action="store_true", help="print the story of each world")
    made.add_argument("--json", action="store_true", help="print one JSON document")
    return made


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return count


def main(args: list[str]) -> int:
    """Play what was asked for; 1 where something was found, or where something that had to happen never did."""
    asked = parser()
    given = asked.parse_args(args)
    if given.broker and given.ledger != "memory":
        asked.error("--broker: one process alone hands nothing over")
    if given.inbox and (given.ledger != "memory" or given.nodes != 1 or given.broker):
        asked.error("--inbox: draws its own sender, on the memory ledger")
    result = _play(given)
    if given.record is not None:
        given.record.write_text(render(_as_record(result, given.seed or 0), indent=2) + "\n")
    if given.json:
        document(_as_json(result))
    else:
        _print(result, given)
    return 0 if result.held else 1


def _play(given: argparse.Namespace) -> Campaign:
    from lab.sim.campaign import campaign, cores

    count = given.seeds or (100 if given.seed is None and not given.trace else 1)
    done = 0

    def told(report: Report) -> None:
        nonlocal done
        done += 1
        if given.trace and not given.json:
            for text in report.tail:
                line(text)
        if report.finding is not None:
            note(f"\rseed {report.seed}: {report.finding}")
        elif sys.stderr.isatty() and not given.trace:
            sys.stderr.write(f"\r{done} of {count} worlds")
            sys.stderr.flush()
        elif count > done and done % LINE_EVERY == 0 and not given.trace:
            note(f"{done} of {count} worlds")

    return campaign(
        given.seed or 0,
        count,
        ledger=given.ledger,
        nodes=given.nodes,
        broker=given.broker,
        inbox=given.inbox,
        jobs=given.jobs or (cores() if count >= MANY else 1),
        told=told,
        tail=2_000 if given.trace else TAIL,
    )


def _print(result: Campaign, given: argparse.Namespace) -> None:
    if sys.stderr.isatty():
        note("")
    for report in result.failed:
        if not given.trace:
            for text in report.tail:
                note(text)
        line(f"found: {report.finding}")
        line(
            f"replay: {report.replay}"
            + (f" --nodes {given.nodes}" if given.nodes > 1 else "")
            + (" --broker" if given.broker else "")
        )
    for name in result.never:
        line(f"never seen: {name}")
    rate = result.virtual_s / result.took_s if result.took_s else 0.0
    if result.inbox:
        crashes = [result.counts.get(f"{side}-crash", 0) for side in ("sender", "inbox")]
        line(
            f"sim: worlds={result.runs} failed={len(result.failed)} events={result.events} applied={result.applied} "
            f"crashes_sender={crashes[0]} crashes_inbox={crashes[1]} requests={result.counts.get('request', 0)} "
            f"virtual_s={result.virtual_s:.0f} seconds={result.took_s:.1f} speed={rate:.0f}x"
        )
        return
    line(
        f"sim: worlds={result.runs} failed={len(result.failed)} ledger={result.ledger} "
        f"requests={result.counts.get('request', 0)} deaths={result.counts.get('died', 0)} "
        f"virtual_s={result.virtual_s:.0f} seconds={result.took_s:.1f} speed={rate:.0f}x"
    )


def _as_json(result: Campaign) -> dict[str, Any]:
    return {
        "ledger": result.ledger,
        "worlds": result.runs,
        "held": result.held,
        "failed": [
            {
                "seed": report.seed,
                "finding": report.finding,
                "replay": report.replay,
                "digest": report.digest,
                "faults": list(report.faults),
                "tail": report.tail,
            }
            for report in result.failed
        ],
        "never": list(result.never),
        "counts": result.counts,
        "virtual_s": result.virtual_s,
        "seconds": result.took_s,
    }


def _as_record(result: Campaign, first: int) -> dict[str, Any]:
    """A record of a campaign: enough to run it again, and what it came to."""
    counts = result.counts
    asked = "--inbox" if result.inbox else f"--ledger {result.ledger}"
    return {
        "version": __version__,
        "command": f"python -m lab sim {asked}",
        "seeds": {"first": first, "last": first + result.runs - 1},
        "worlds": result.runs,
        "findings": [{"seed": report.seed, "finding": report.finding} for report in result.failed],
        "never_seen": list(result.never),
        "events": result.events,
        "applied": result.applied,
        "requests": counts.get("request", 0),
        "crashes": {"sender": counts.get("sender-crash", 0), "inbox": counts.get("inbox-crash", 0)},
        "inbox_deaths": {
            name.removeprefix("inbox-death-"): count
            for name, count in sorted(counts.items())
            if name.startswith("inbox-death-")
        },
        "virtual_s": result.virtual_s,
        "seconds": result.took_s,
    }
