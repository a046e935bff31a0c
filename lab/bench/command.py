"""`python -m lab bench`: the product measured from outside, on this machine, with its own generator and receiver."""

from __future__ import annotations

import argparse
import pathlib
import shlex
import signal
import sys
from importlib import import_module
from typing import NamedTuple

from surehook.host.process import need_descriptors


class Option(NamedTuple):
    """An argument of a scenario's `run` that the command line can give; of the kind `bool` it is a switch."""

    name: str
    kind: type[bool] | type[int] | type[float]
    help: str


class Scenario(NamedTuple):
    """One line of the table: `run` of a module in this folder, and what may be told to it."""

    name: str
    module: str
    summary: str
    options: tuple[Option, ...] = ()
    timed: bool = True  # its length is a choice


# In the order of `all`, which leaves the last two out.
SCENARIOS = (
    Scenario("throughput", "throughput", "The ceiling: one event per POST, 50 per batch, fan-out 5."),
    Scenario("latency", "latency", "Acceptance and arrival at 50 and 200 events a second."),
    Scenario("idle", "idle", "CPU of a server that has nothing to do."),
    Scenario(
        "lateness",
        "lateness",
        "Retries while the engine runs at half of its peak: how late, and whether any is early.",
        (Option("peak", float, "deliveries/s at the peak; else measured first"),),
    ),
    Scenario(
        "isolation", "isolation", "What healthy endpoints notice of 0, 10 and 100 hanging ones. About six minutes."
    ),
    Scenario(
        "backlog",
        "backlog",
        "Claim and deliver rate with a thousand, a hundred thousand and a million deliveries waiting.",
        (
            Option("largest", int, "the most waiting deliveries (1,000,000)"),
            Option("future", bool, "they wait for a far retry, instead of parked"),
        ),
        timed=False,
    ),
    Scenario(
        "memory",
        "memory",
        "Memory with a million deliveries waiting: filling, after a restart, draining.",
        (Option("waiting", int, "deliveries that wait (1,000,000)"),),
    ),
    Scenario(
        "yousign",
        "yousign",
        "The published case: 4,000 messages in 5 minutes, to endpoints that answer in 500 ms, in 2 s, and never within 10 s.",
        (
            Option("real", bool, "on the wall clock: five minutes, and two for second calls"),
            Option("adaptive", bool, "with --real: 4,000 events, and slow endpoints are called patiently at once"),
        ),
    ),
    Scenario(
        "kill9",
        "kills",
        "kill -9 under load, start again, and again: lost, duplicated, time back.",
        (
            Option("kills", int, "how often (100)"),
            Option("rate", float, "events/s meanwhile (1,000)"),
            Option("seed", int, "of the moments of the kills (1)"),
        ),
        timed=False,
    ),
)  # fmt: skip
NOT_OF_ALL = ("yousign", "kill9")


def parser() -> argparse.ArgumentParser:
    """The command line: a scenario, its own options, and those that all have."""
    made = argparse.ArgumentParser(prog="python -m lab bench", description=__doc__)
    scenarios = made.add_subparsers(dest="scenario", metavar="SCENARIO", required=True)
    every = "Everything but kill9 and yousign, one after the other: about fifteen minutes."
    for scenario in (*SCENARIOS, Scenario("all", "", every)):
        one = scenarios.add_parser(scenario.name, help=scenario.summary, description=scenario.summary)
        for option in scenario.options:
            if option.kind is bool:
                one.add_argument(f"--{option.name}", action="store_true", default=None, help=option.help)
            else:
                one.add_argument(f"--{option.name}", type=option.kind, help=option.help)
        if scenario.timed:
            one.add_argument("--seconds", type=float, help="of each measured run; else the scenario's own")
        one.add_argument(
            "--json", action="store_true", help="one JSON document (a list of results) on stdout"
        )
        one.add_argument("--out", type=pathlib.Path, help="write the JSON document to this file as well")
        one.add_argument("--server", default="", help="command that starts the server, else `surehook serve`")
        one.add_argument("--dir", type=pathlib.Path, help="where the ledger goes: the disk that is measured")
    return made


def main(args: list[str]) -> int:
    """Run, print; exit status 1 where something was lost or a verdict is bad, so that a script notices."""
    given = parser().parse_args(args)
    # Asked before the scenarios are loaded, which takes descriptors.
    need_descriptors()

    from lab.bench import report
    from lab.bench.stage import Setup

    # A bench that is told to stop takes its server and its receivers with it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with report.terminal() as say:
        setup = Setup(
            say=say,
            seconds=getattr(given, "seconds", None),
            command=tuple(shlex.split(given.server)),
            folder=given.dir,
        )
        results = [
            result
            for scenario in SCENARIOS
            if scenario.name == given.scenario
            or (given.scenario == "all" and scenario.name not in NOT_OF_ALL)
            for result in import_module(f"lab.bench.{scenario.module}").run(setup, **_told(given, scenario))
        ]
    report.show(results, as_json=given.json, out=given.out)
    return int(any(result.get("lost") or not result.get("passed", True) for result in results))


def _told(given: argparse.Namespace, scenario: Scenario) -> dict[str, object]:
    """Options of the scenario that were given; the others are as its `run` has them."""
    named = {option.name: getattr(given, option.name, None) for option in scenario.options}
    return {name: value for name, value in named.items() if value is not None}
