"""An upgrade under load: `python -m lab upgrade --old CHECKOUT [--ledger sqlite,pg] [--events N] [--json]`.

The version of CHECKOUT, which has a `.venv` of its own, fills a ledger through its API. Most events are delivered; of each
200, one stays at an endpoint that refuses connections, one at a paused one, one waits an hour for its retry, and one is a
dead letter. Then events are published at a fixed rate, each again under its id until it is answered 202, and the version of
this checkout takes over:

    sqlite  the old server is stopped (SIGTERM), `surehook migrate up` runs where the schema is older, and the new server
            starts on the same file
    pg      `surehook migrate up` runs beside an old API process and an old worker, a new API process and a new worker
            start beside them, and later the old ones are stopped (SIGTERM), the worker first

Every acknowledged event must arrive at the healthy endpoint and be in the ledger with all its deliveries; no row of the old
version may vanish; no node may log an error, and PostgreSQL no failed statement. Status 1 where this does not hold.
"""
# ruff: noqa: T201 (a program that prints)

from __future__ import annotations

import argparse
import json
import sys
from array import array
from collections import Counter
from contextlib import ExitStack
from itertools import pairwise

from lab.bench.records import Sent
from lab.bench.upgrade_ledger import LEDGERS, Rows, read, unfinished, vanished
from lab.bench.upgrade_nodes import ENDING
from lab.bench.upgrade_run import Told, Upgrade
from surehook.core import ids
from tests.servers import folder

RATE = 200.0  # events/s; half as many more at the new API once it is there
LINES_MOST = 50  # of logs, in the document


def judge(run: Upgrade, before: Rows, sents: list[Sent]) -> Told:
    """Compare logs, arrivals and rows."""
    after, arrivals = read(run.ledger), run.healthy.report()
    acknowledged = [id for sent in sents for id in sent.rows()[0]]
    _, events, at, _ = arrivals.rows()
    arrived = Counter(events)
    stored = {ids.parse(ids.EVENT, id.decode()).hex() for id in acknowledged}
    promised = sum(sent.deliveries for sent in sents)
    told = [node.told() for node in (*run.old, *run.new)]
    warnings = sum((each for _, each in told), Counter[str]())
    statuses = sum((Counter(sent.statuses) for sent in sents), Counter[str]())
    wrong: dict[str, int] = {
        "lost": sum(id not in arrived for id in acknowledged),
        "not in the ledger": len(stored - after.events),
        "deliveries missing": max(0, promised - (after.deliveries() - before.deliveries())),
        "deliveries unfinished": unfinished(run.ledger, ENDING),
        **{f"vanished {name}": count for name, count in vanished(before, after).items()},
        "never acknowledged": sum(sent.refused + sent.unanswered for sent in sents),
        "errors in logs": sum(len(bad) for bad, _ in told),
        "failed statements": len(run.ledger.failed_statements()),
        "nodes that did not end well": sum(node.status != 0 for node in (*run.old, *run.new)),
    }
    return run.said | {
        "acknowledged": len(acknowledged), "arrived": len(arrived.keys() & set(acknowledged)),
        "arrived more than once": sum(count > 1 for count in arrived.values()),
        "sent again to slow and failing endpoints after a success": run.others.count().duplicated,
        "answers": dict(statuses), "longest without a 202, s": longest(sorted(_accepted(sents))),
        "longest without an arrival, s": longest(at), **wrong,
        "before": before.counts(), "after": after.counts(), "warnings": dict(warnings),
        "lines": [*(line for bad, _ in told for line in bad), *run.ledger.failed_statements()][:LINES_MOST],
        "passed": bool(acknowledged) and not any(wrong.values()),
    }  # fmt: skip


def _accepted(sents: list[Sent]) -> list[int]:
    return [at for sent in sents for at in sent.rows()[2]]


def longest(instants: list[int] | array[int]) -> float:
    """Return the longest time between two instants that follow each other, in seconds."""
    return round(max((later - earlier for earlier, later in pairwise(instants)), default=0) / 1e9, 2)


def table(lines: list[Told]) -> str:
    """Format the documents for people."""
    names = list(dict.fromkeys(name for line in lines for name in line))
    width = max(map(len, names))
    rows = [f"{name:<{width}}  " + "  |  ".join(str(line.get(name, "")) for line in lines) for name in names]
    return "\n".join(rows)


def upgrade(chosen: argparse.Namespace, kind: str) -> Told:
    """Fill one ledger, upgrade it, and judge."""
    with ExitStack() as stack:
        made = Upgrade(chosen, kind, stack)
        before = made.fill()
        made.take_over()
        return judge(made, before, made.settle())


def main(args: list[str]) -> int:
    """Upgrade each ledger and print what was seen."""
    options = argparse.ArgumentParser(
        prog="python -m lab upgrade",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--old", required=True, help="a checkout of the version before, with its .venv")
    options.add_argument("--ledger", default="sqlite,pg", help="sqlite, pg, or both with a comma between")
    options.add_argument("--events", type=int, default=1_000_000, help="in the ledger before (1,000,000)")
    options.add_argument("--rate", type=float, default=RATE, help="events published a second (200)")
    options.add_argument("--beside", type=float, default=20.0, help="seconds side by side (20)")
    options.add_argument(
        "--after", type=float, default=20.0, help="seconds of load after the old version (20)"
    )
    options.add_argument("--json", action="store_true", help="print one JSON document")
    chosen = options.parse_args(args)
    kinds = chosen.ledger.split(",")
    if unknown := set(kinds) - set(LEDGERS):
        options.error(f"no such ledger: {', '.join(unknown)}; known: {', '.join(LEDGERS)}")
    passed = False
    try:
        lines = [upgrade(chosen, kind) for kind in kinds]
        passed = all(line["passed"] for line in lines)
    finally:
        kept = folder.end(well=passed)
        if kept is not None:
            print(f"logs: {kept}", file=sys.stderr)
    print(json.dumps(lines, indent=2) if chosen.json else table(lines))
    return 0 if passed else 1
