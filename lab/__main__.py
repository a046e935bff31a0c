"""`python -m lab COMMAND …`, from the checkout: what proves the product."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import NamedTuple

from surehook.cli.errors import report
from surehook.core.errors import SurehookError


class Command(NamedTuple):
    """A module whose `main` takes the command's words and returns its exit status."""

    module: str
    summary: str


COMMANDS = {
    "sim": Command("lab.sim.command", "simulated worlds from seeds; a failing one is one line to replay"),
    "mutants": Command("tests.sim.planting", "planted bugs, each of which worlds must find"),
    "bench": Command("lab.bench.command", "throughput, latency, isolation and more, measured from outside"),
    "faults": Command("lab.bench.faults", "faults on real processes and servers, again and again"),
    "upgrade": Command("lab.bench.upgrade", "an upgrade from the version of another checkout, under load, on both ledgers"),
    "powerloss": Command("tests.ledgers.powerloss.command", "power losses at any I/O call of the SQLite ledger"),
    "hostile": Command("lab.bench.hostile", "receivers that hold an attempt, and the bytes it holds"),
    "fuzz": Command("lab.bench.fuzz", "noise against the readers of answers and URLs"),
    "openapi": Command("lab.openapi", "writes docs/openapi.json anew"),
    "typescript": Command("lab.typescript", "the TypeScript client: generated, compiled, and an event delivered by it"),
    "fuzz-verify": Command("tests.inbox.fuzz", "near misses of every provider's messages against surehook.verify"),
}  # fmt: skip


def parser() -> argparse.ArgumentParser:
    """The command line up to the command, whose own words are its own."""
    width = max(map(len, COMMANDS))
    made = argparse.ArgumentParser(
        prog="python -m lab",
        description="\n".join(f"{name:{width}}  {command.summary}" for name, command in COMMANDS.items()),
        epilog="Further benches are programs: python -m lab.bench.NAME --help.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("command", choices=COMMANDS, metavar="COMMAND")
    return made


def run(args: list[str]) -> int:
    """Run one command line and return its exit status; what a bench or the system refuses is a sentence, and Ctrl-C no trace."""
    given = parser().parse_args(args[:1])
    try:
        status = import_module(COMMANDS[given.command].module).main(args[1:])
        sys.stdout.flush()
    except (SurehookError, OSError, KeyboardInterrupt) as error:
        return report(error)
    return int(status)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
