"""`surehook sim`: worlds from seeds; a failing one is one line to replay."""

from __future__ import annotations

import sys
from json import dumps as render
from pathlib import Path
from typing import Annotated, Any

import typer

from surehook.cli.commands import command
from surehook.cli.output import Json, document, line, note

app = command()

LINE_EVERY = 100  # worlds, where there is no terminal to redraw
MANY = 20  # worlds, for which it pays to begin processes
TAIL = 40  # of a failing world's last lines shown; --trace shows up to 2,000


@app.command()
def sim(
    seed: Annotated[int | None, typer.Option(help="The first seed.  [default: 0]")] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="How many.  [default: 100, or 1 with --seed or --trace]")
    ] = None,
    ledger: Annotated[str, typer.Option(help="memory or sqlite.")] = "memory",
    nodes: Annotated[
        int, typer.Option(min=1, max=4, help="Processes that may share the ledger (memory only).")
    ] = 1,
    broker: Annotated[
        bool, typer.Option("--broker", help="Ready work goes through a broker in trouble (memory only).")
    ] = False,
    inbox: Annotated[
        bool,
        typer.Option("--inbox", help="The receiver has an inbox, which is in trouble as well (memory only)."),
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help=f"Processes that play them.  [default: one a core from {MANY} worlds on]"),
    ] = None,
    record: Annotated[
        Path | None, typer.Option(help="Write the figures to this file, JSON.", dir_okay=False)
    ] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Print the story of each world.")] = False,
    json: Json = False,
) -> int:
    """Run simulated worlds: crashes, clock steps, bad receivers. Exit code 1 if something was found."""
    from surehook.cli.errors import FAILED, OK

    if ledger not in ("memory", "sqlite"):
        raise typer.BadParameter("memory or sqlite", param_hint="--ledger")
    if broker and ledger != "memory":
        raise typer.BadParameter("one process alone hands nothing over", param_hint="--broker")
    if inbox and (ledger != "memory" or nodes != 1 or broker):
        raise typer.BadParameter("draws its own sender, on the memory ledger", param_hint="--inbox")
    first = seed or 0
    count = seeds if seeds is not None else 100 if seed is None and not trace else 1
    result = _play(first, count, ledger, nodes, broker=broker, inbox=inbox, jobs=jobs, trace=trace, json=json)
    if record is not None:
        record.write_text(render(_as_record(result, first), indent=2) + "\n")
    if json:
        document(_as_json(result))
    else:
        _print(result, nodes, broker=broker, trace=trace)
    return OK if result.held else FAILED


def _play(
    seed: int,
    count: int,
    ledger: Any,
    nodes: int,
    *,
    broker: bool,
    inbox: bool,
    jobs: int | None,
    trace: bool,
    json: bool,
) -> Any:
    from lab.sim.campaign import campaign, cores

    done = 0

    def told(report: Any) -> None:
        nonlocal done
        done += 1
        if trace and not json:
            for text in report.tail:
                line(text)
        if report.finding is not None:
            note(f"\rseed {report.seed}: {report.finding}")
        elif sys.stderr.isatty() and not trace:
            sys.stderr.write(f"\r{done} of {count} worlds")
            sys.stderr.flush()
        elif count > done and done % LINE_EVERY == 0 and not trace:
            note(f"{done} of {count} worlds")

    return campaign(
        seed,
        count,
        ledger=ledger,
        nodes=nodes,
        broker=broker,
        inbox=inbox,
        jobs=jobs or (cores() if count >= MANY else 1),
        told=told,
        tail=2_000 if trace else TAIL,
    )


def _print(result: Any, nodes: int, *, broker: bool, trace: bool) -> None:
    if sys.stderr.isatty():
        note("")
    for report in result.failed:
        if not trace:
            for text in report.tail:
                note(text)
        line(f"found: {report.finding}")
        line(
            f"replay: {report.replay}"
            + (f" --nodes {nodes}" if nodes > 1 else "")
            + (" --broker" if broker else "")
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


def _as_json(result: Any) -> dict[str, Any]:
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


def _as_record(result: Any, first: int) -> dict[str, Any]:
    """What is kept of a campaign: enough to run it again, and what it came to."""
    from surehook import __version__

    counts = result.counts
    return {
        "version": __version__,
        "command": "surehook sim --inbox" if result.inbox else f"surehook sim --ledger {result.ledger}",
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
