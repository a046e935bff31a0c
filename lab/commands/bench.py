"""`surehook bench`: the product measured from outside, on this machine, with its own generator and receiver."""

from __future__ import annotations

import pathlib
import shlex
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from surehook.cli.commands import group

app = group("Measure this machine: throughput, latency, isolation and more.")

Seconds = Annotated[
    float | None,
    typer.Option("--seconds", min=1, help="Length of each measured run. Default: the scenario's own."),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document (a list of results) on stdout.")]
Out = Annotated[
    pathlib.Path | None, typer.Option("--out", help="Write the JSON document to this file as well.")
]
Command = Annotated[
    str,
    typer.Option(
        "--server", help="Command that starts the server. Default: this environment's surehook serve."
    ),
]
Folder = Annotated[
    pathlib.Path | None,
    typer.Option("--dir", help="Where the temporary ledger goes: the disk that is measured."),
]

Work = Callable[[Any], list[dict[str, Any]]]


def _bench(work: Work, seconds: float | None, as_json: bool, out: pathlib.Path | None, command: str,
           folder: pathlib.Path | None) -> None:  # fmt: skip
    """Run, print; exit status 1 where something was lost, so that a script notices."""
    import signal

    from lab.bench import report
    from lab.bench.stage import Setup
    from surehook.host.process import need_descriptors

    # A bench that is told to stop takes its server and its receivers with it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    need_descriptors()
    with report.terminal() as say:
        setup = Setup(say=say, seconds=seconds, command=tuple(shlex.split(command)), folder=folder)
        results = work(setup)
    report.show(results, as_json=as_json, out=out)
    if any(result.get("lost") for result in results):
        raise typer.Exit(1)


@app.command()
def throughput(
    seconds: Seconds = None,
    as_json: Json = False,
    out: Out = None,
    server: Command = "",
    folder: Folder = None,
) -> None:
    """The ceiling: one event per POST, 50 per batch, fan-out 5."""

    def work(setup: Any) -> list[dict[str, Any]]:
        from lab.bench import throughput as scenario

        return scenario.run(setup)

    _bench(work, seconds, as_json, out, server, folder)


@app.command()
def latency(
    seconds: Seconds = None,
    as_json: Json = False,
    out: Out = None,
    server: Command = "",
    folder: Folder = None,
) -> None:
    """Acceptance and arrival at 50 and 200 events a second."""

    def work(setup: Any) -> list[dict[str, Any]]:
        from lab.bench import latency as scenario

        return scenario.run(setup)

    _bench(work, seconds, as_json, out, server, folder)


@app.command()
def isolation(
    seconds: Seconds = None,
    as_json: Json = False,
    out: Out = None,
    server: Command = "",
    folder: Folder = None,
) -> None:
    """What healthy endpoints notice of 0, 10 and 100 hanging ones. About six minutes."""

    def work(setup: Any) -> list[dict[str, Any]]:
        from lab.bench import isolation as scenario

        return scenario.run(setup)

    _bench(work, seconds, as_json, out, server, folder)


@app.command()
def lateness(
    seconds: Seconds = None, as_json: Json = False, out: Out = None, server: Command = "", folder: Folder = None,
    peak: Annotated[float | None, typer.Option(help="Deliveries/s at the peak. Default: measured first.")] = None,
) -> None:  # fmt: skip
    """Retries while the engine runs at half of its peak: how late, and whether any is early."""

    def work(setup: Any) -> list[dict[str, Any]]:
        from lab.bench import lateness as scenario

        return scenario.run(setup, peak)

    _bench(work, seconds, as_json, out, server, folder)


@app.command()
def backlog(
    as_json: Json = False, out: Out = None, server: Command = "", folder: Folder = None,
    largest: Annotated[int, typer.Option(help="The most waiting deliveries.")] = 1_000_000,
    future: Annotated[bool, typer.Option("--future", help="Wait for a far retry, instead of parked.")] = False,
) -> None:  # fmt: skip
    """Claim and deliver rate with a thousand, a hundred thousand and a million deliveries waiting."""

    def work(setup: Any) -> list[dict[str, Any]]:
        from lab.bench import backlog as scenario

        sizes = tuple(size for size in scenario.SIZES if size <= largest) or (largest,)
        return scenario.run(setup, sizes, "future" if future else "parked")

    _bench(work, None, as_json, out, server, folder)


@app.command()
def memory(
    seconds: Seconds = None, as_json: Json = False, out: Out = None, server: Command = "", folder: Folder = None,
    waiting: Annotated[int, typer.Option(help="Deliveries that wait.")] = 1_000_000,
) -> None:  # fmt: skip
    """Memory with a million deliveries waiting: filling, after a restart, draining."""

    def work(setup: Any) -> list[dict[str, Any]]:
        from lab.bench import memory as scenario

        return scenario.run(setup, waiting)

    _bench(work, seconds, as_json, out, server, folder)


@app.command()
def idle(
    seconds: Seconds = None,
    as_json: Json = False,
    out: Out = None,
    server: Command = "",
    folder: Folder = None,
) -> None:
    """CPU of a server that has nothing to do."""

    def work(setup: Any) -> list[dict[str, Any]]:
        from lab.bench import idle as scenario

        return scenario.run(setup)

    _bench(work, seconds, as_json, out, server, folder)


@app.command()
def yousign(
    seconds: Seconds = None, as_json: Json = False, out: Out = None, server: Command = "", folder: Folder = None,
    real: Annotated[bool, typer.Option("--real", help="On the wall clock: five minutes, and two for second calls.")] = False,
    adaptive: Annotated[
        bool,
        typer.Option("--adaptive", help="With --real: 4,000 events, and endpoints found slow are called patiently at once."),
    ] = False,
) -> None:  # fmt: skip
    """The published case: 4,000 messages in 5 minutes, to endpoints that answer in 500 ms, in 2 s, and never within 10 s.

    The endpoints have the policy `yousign` as it is: what they do not answer within 1 s is sent again two minutes later.
    On virtual time unless told `--real`. There 4,000 events to each of them follow, under `{"profile": "yousign",
    "adaptive": true}`, and a plain single queue with as many slots in all.
    """

    def work(setup: Any) -> list[dict[str, Any]]:
        from lab.bench import yousign as scenario

        return scenario.run_real(setup, adaptive=adaptive) if real else scenario.run_virtual(setup)

    _bench(work, seconds, as_json, out, server, folder)


@app.command()
def kill9(
    as_json: Json = False, out: Out = None, server: Command = "", folder: Folder = None,
    kills: Annotated[int, typer.Option(min=1, help="How often.")] = 100,
    rate: Annotated[float, typer.Option(help="Events/s meanwhile.")] = 1000.0,
) -> None:  # fmt: skip
    """kill -9 under load, start again, and again: lost, duplicated, time back."""

    def work(setup: Any) -> list[dict[str, Any]]:
        from lab.bench import kills as scenario

        return scenario.run(setup, kills, rate)

    _bench(work, None, as_json, out, server, folder)


@app.command(name="all")
def everything(
    seconds: Seconds = None,
    as_json: Json = False,
    out: Out = None,
    server: Command = "",
    folder: Folder = None,
) -> None:
    """Everything but kill9 and yousign, one after the other: about fifteen minutes."""

    def work(setup: Any) -> list[dict[str, Any]]:
        from lab.bench import backlog, idle, isolation, latency, lateness, memory, throughput

        rooms = (throughput, latency, idle, lateness, isolation, backlog, memory)
        return [result for room in rooms for result in room.run(setup)]

    _bench(work, seconds, as_json, out, server, folder)
