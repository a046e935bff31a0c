"""`surehook sim`: worlds from seeds; a failing one is one line to replay."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from surehook.cli.lazy import command
from surehook.cli.output import Json, document, line, note

app = command()

TAIL = 40  # of a failing world's last lines shown; --trace shows up to 2,000


@app.command()
def sim(
    seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="How many.  [default: 100, or 1 with --trace]")
    ] = None,
    ledger: Annotated[str, typer.Option(help="memory or sqlite.")] = "memory",
    nodes: Annotated[
        int, typer.Option(min=1, max=4, help="Processes that may share the ledger (memory only).")
    ] = 1,
    broker: Annotated[
        bool, typer.Option("--broker", help="Ready work goes through a broker in trouble (memory only).")
    ] = False,
    trace: Annotated[bool, typer.Option("--trace", help="Print the story of each world.")] = False,
    json: Json = False,
) -> int:
    """Run simulated worlds: crashes, clock steps, bad receivers. Exit code 1 if something was found."""
    from surehook.cli.faults import FAILED, OK

    if ledger not in ("memory", "sqlite"):
        raise typer.BadParameter("memory or sqlite", param_hint="--ledger")
    if broker and ledger != "memory":
        raise typer.BadParameter("one process alone hands nothing over", param_hint="--broker")
    count = seeds if seeds is not None else 1 if trace else 100
    result = _play(seed, count, ledger, nodes, broker=broker, trace=trace, json=json)
    if json:
        document(_as_json(result))
    else:
        _print(result, nodes, broker=broker, trace=trace)
    return OK if result.held else FAILED


def _play(seed: int, count: int, ledger: Any, nodes: int, *, broker: bool, trace: bool, json: bool) -> Any:
    from surehook.sim.campaign import campaign

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

    return campaign(
        seed, count, ledger=ledger, nodes=nodes, broker=broker, told=told, tail=2_000 if trace else TAIL
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
