"""Cost of a delivery beyond one process: `python -m lab.bench.scale [--part …] [--seconds N]`.

Private servers (a PostgreSQL that writes through to the disk, a RabbitMQ), the product's own processes, and the
benches' generator and receiver; events of 600 bytes, one a request and fifty a request, as fast as they are taken, and
at 300 a second for the latency. Parts:

    one         one process does all; work goes through its memory          (what the others are compared with)
    split       an API process and a worker; work is claimed
    broker      the same with RabbitMQ lanes
    workers     an API process and two workers
    processes   two processes that do all, on one port
    parked      a million parked deliveries in the ledger                    against the same without, for `one`
    history     five million old events and their attempts                       and `split` each
    snapshot    a transaction held open for ten minutes

What is compared runs in turns, in an order that is reversed each round, and the ratio is the median of the rounds'
ratios: drift of the machine cancels. Prints one JSON document on stdout (and into --record) and tables on stderr.
Status 1 where anything was lost or a ratio is below what is asked for. On a machine with few cores the generator, the
receiver, the database and the product share them: then CPU a delivery tells more than deliveries a second.
"""
# ruff: noqa: T201 (a program that prints)

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

from lab.bench.scale_fill import park, remember
from lab.bench.scale_fleet import MODES, SHAPES, Fleet, held_snapshot, rest
from lab.bench.stage import receiver
from tests.servers import Postgres, Rabbits, folder, missing

SETTINGS = {
    "shared_buffers": "1GB", "max_wal_size": "4GB", "checkpoint_timeout": "30min", "wal_level": "minimal",
    "max_wal_senders": "0", "maintenance_work_mem": "256MB", "max_connections": "300",
}  # fmt: skip
PARKED, OLD, HELD_S = 1_000_000, 5_000_000, 600.0
TOPOLOGIES = ("split", "broker", "workers", "processes")
LOADED = ("parked", "history", "snapshot")
SPLIT_LEAST = 0.6  # of one process
LOADED_LEAST = 0.9  # of the same without
COLUMNS = (
    ("delivered_per_s", "delivered/s"), ("product_cpu_us", "product µs"), ("api_cpu_us", "API µs"),
    ("worker_cpu_us", "worker µs"), ("database_cpu_us", "database µs"), ("broker_cpu_us", "broker µs"),
    ("wal_bytes", "WAL B"), ("wal_page_bytes", "of it pages"), ("transactions", "transactions"),
    ("broker_messages", "messages"), ("arrival_p50_ms", "p50 ms"), ("arrival_p95_ms", "p95 ms"),
    ("lost", "lost"), ("duplicated", "twice"), ("load", "load"), ("foreign_cores", "others' cores"),
)  # fmt: skip
ADDED = ("lost", "duplicated", "refused", "delivered")


class Bench:
    """The servers, and the runs that were made."""

    def __init__(self, chosen: argparse.Namespace, stack: ExitStack) -> None:
        self.chosen, self.stack = chosen, stack
        self.runs: list[dict[str, Any]] = []
        self.server = Postgres.new(durable=True, settings=SETTINGS)
        stack.callback(self.server.close)
        self.sink = stack.enter_context(receiver())
        self._rabbit: Any = None

    def fleet(self, name: str, shape: str, stack: ExitStack | None = None) -> Fleet:
        """A running fleet on a database of its own."""
        if SHAPES[shape].broker and self._rabbit is None:
            cluster = Rabbits.new(1)
            self.stack.callback(cluster.close)
            self._rabbit = cluster.nodes[0]
        say(f"{name}: {SHAPES[shape].says}")
        return Fleet(self.server, name, shape, self.sink, broker=self._rabbit, stack=stack or self.stack)

    def in_turns(
        self, part: str, fleets: list[Fleet], modes: list[str], *, until: Callable[[int], bool] | None = None
    ) -> None:
        """Rounds of all fleets in all modes, forwards and backwards; `until` says after which round it is enough."""
        number = 0
        enough = until or (lambda done: done >= self.chosen.rounds)
        while not enough(number):
            for mode in modes:
                for fleet in fleets if number % 2 == 0 else fleets[::-1]:
                    result = fleet.run(mode, self.chosen.seconds)
                    self.runs.append({"part": part, "round": number, **result})
                    say(brief(result))
            number += 1


def brief(result: dict[str, Any]) -> str:
    """A run in one line."""
    return (
        f"  {result['fleet']:<16} {result['mode']:<8} {result['delivered_per_s']:>6}/s  product {result['product_cpu_us']} µs  "
        f"database {result['database_cpu_us']} µs  WAL {result['wal_bytes']} B  lost {result['lost']}  "
        f"load {result['load']} (others {result['foreign_cores']} cores)"
    )


def say(text: str) -> None:
    """Progress."""
    print(text, file=sys.stderr, flush=True)


def topologies(bench: Bench, parts: list[str]) -> dict[str, Any]:
    """One process, and whatever it is compared with."""
    fleets = [bench.fleet(name, name) for name in ("one", *(name for name in TOPOLOGIES if name in parts))]
    modes = [*bench.chosen.modes, "paced"]
    bench.in_turns("shapes", fleets, modes)
    idle = rest(fleets)  # the database's share is that of all fleets together
    rows = {fleet.name: fleet.rows_per_delivery() for fleet in fleets}
    for fleet in fleets:
        fleet.stop()
    ratios = [
        ratio(bench.runs, "shapes", mode, fleet.name, "one")
        for mode in bench.chosen.modes
        for fleet in fleets[1:]
    ]
    return {"rows": rows, "idle_percent": idle, "ratios": ratios}


def loaded(bench: Bench, part: str, shape: str) -> dict[str, Any]:
    """A ledger with something in it, or a transaction held open on it, against one without."""
    chosen = bench.chosen
    with ExitStack() as stack:
        bare = bench.fleet(f"{part}_{shape}_bare", shape, stack)
        heavy = bench.fleet(f"{part}_{shape}", shape, stack)
        began = time.monotonic()
        if part == "parked":
            park(heavy, chosen.parked)
        elif part == "history":
            remember(heavy, chosen.old)
        if part != "snapshot":
            (size,) = heavy.ask("select pg_database_size(current_database()) / 1048576")[0]
            say(f"  filled: {size} MiB in {time.monotonic() - began:.0f} s")
        held = held_snapshot(heavy, chosen.held) if part == "snapshot" else nullcontext()
        end = time.monotonic() + chosen.held

        def enough(done: int) -> bool:
            return done >= chosen.rounds and (part != "snapshot" or time.monotonic() >= end)

        label = f"{part} {shape}"
        with held:
            bench.in_turns(label, [bare, heavy], chosen.modes, until=enough)
        ratios = [ratio(bench.runs, label, mode, heavy.name, bare.name) for mode in chosen.modes]
        dead = heavy.ask("select n_dead_tup from pg_stat_user_tables where relname = 'delivery'")[0][0]
    for fleet in (bare, heavy):
        bench.server.ask(f"drop database {fleet.name} with (force)")
    return {"ratios": ratios, "dead_rows_of_delivery": int(dead)}


def ratio(runs: list[dict[str, Any]], part: str, mode: str, fleet: str, base: str) -> dict[str, Any]:
    """A fleet's runs beside its base's, round by round: medians, and the last round's."""
    of = {(run["round"], run["fleet"]): run for run in runs if run["part"] == part and run["mode"] == mode}
    pairs = [(of[number, fleet], of[number, base]) for number, name in sorted(of) if name == fleet]
    speed = [one["delivered_per_s"] / other["delivered_per_s"] for one, other in pairs]
    # The kernel counts CPU in hundredths of a second, which may be none in a short run.
    product = [other["product_cpu_us"] / max(0.1, one["product_cpu_us"]) for one, other in pairs]
    database = [other["database_cpu_us"] / max(0.1, one["database_cpu_us"]) for one, other in pairs]
    return {
        "part": part, "mode": mode, "fleet": fleet, "of": base, "rounds": len(pairs),
        "speed": round(statistics.median(speed), 3), "speed_last": round(speed[-1], 3),
        "product_cpu": round(statistics.median(product), 3), "database_cpu": round(statistics.median(database), 3),
    }  # fmt: skip


def medians(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line for each fleet and mode."""
    lines = []
    for key in dict.fromkeys((run["fleet"], run["mode"]) for run in runs):
        mine = [run for run in runs if (run["fleet"], run["mode"]) == key]
        line: dict[str, Any] = {"fleet": key[0], "mode": key[1], "rounds": len(mine)}
        for name in mine[0]:
            values = [run[name] for run in mine if isinstance(run[name], int | float)]
            if values and name != "round":
                line[name] = sum(values) if name in ADDED else round(statistics.median(values), 4)
        lines.append(line)
    return lines


def table(lines: list[dict[str, Any]]) -> str:
    """Medians for people."""
    shown = [(key, title) for key, title in COLUMNS if any(line.get(key) is not None for line in lines)]
    rows = [["", "", *(title for _, title in shown)]]
    for line in lines:
        cells = [line.get(key) for key, _ in shown]
        rows.append([line["fleet"], line["mode"], *("" if cell is None else f"{cell:g}" for cell in cells)])
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows
    )


def verdicts(document: dict[str, Any]) -> list[str]:
    """Promises that do not hold."""
    wrong = [
        f"{line['fleet']} {line['mode']}: {line['lost']} lost"
        for line in document["medians"]
        if line["lost"] > 0
    ]
    for one in document.get("ratios", []):
        least = LOADED_LEAST if one["part"] != "shapes" else SPLIT_LEAST if one["fleet"] == "split" else None
        if least is not None and one["speed"] < least:
            wrong.append(
                f"{one['fleet']} {one['mode']}: {one['speed']} of {one['of']}, at least {least} is asked for"
            )
    return wrong


def measure(chosen: argparse.Namespace, document: dict[str, Any]) -> None:
    """All parts that were asked for. What is measured is in the document even where a later part fails."""
    document |= {
        "seconds": chosen.seconds, "rounds": chosen.rounds, "parked": chosen.parked, "old": chosen.old,
        "held_s": chosen.held, "ratios": [], "postgresql": SETTINGS,
        "machine": {"cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()},
    }  # fmt: skip
    with ExitStack() as stack:
        bench = Bench(chosen, stack)
        document["runs"] = bench.runs
        if "one" in chosen.part or any(part in TOPOLOGIES for part in chosen.part):
            told = topologies(bench, chosen.part)
            document["ratios"] += told.pop("ratios")
            document |= told
        for part in (part for part in LOADED if part in chosen.part):
            for shape in chosen.shapes:
                told = loaded(bench, part, shape)
                document["ratios"] += told.pop("ratios")
                document[f"{part} {shape}"] = told


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(
        prog="python -m lab.bench.scale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = ("one", *TOPOLOGIES, *LOADED)
    words = lambda text: [word for word in text.replace(",", " ").split() if word]  # noqa: E731
    options.add_argument(
        "--part", type=words, default=[], help=f"parts, with commas between: {', '.join(known)}"
    )
    options.add_argument("--seconds", type=float, default=8.0, help="of each run (8)")
    options.add_argument("--rounds", type=int, default=3, help="of each comparison (3)")
    options.add_argument("--modes", type=words, default=["single", "batch50"], help="single,batch50")
    options.add_argument(
        "--shapes", type=words, default=["one", "split"], help="of parked, history, snapshot"
    )
    options.add_argument("--parked", type=int, default=PARKED, help="parked deliveries (1,000,000)")
    options.add_argument("--old", type=int, default=OLD, help="old events (5,000,000: 9 GB)")
    options.add_argument("--held", type=float, default=HELD_S, help="seconds of the transaction (600)")
    options.add_argument("--record", type=Path, help="a file for the document")
    chosen = options.parse_args()
    chosen.part = chosen.part or list(known)
    for given, allowed in ((chosen.part, known), (chosen.modes, MODES), (chosen.shapes, SHAPES)):
        if unknown := set(given) - set(allowed):
            options.error(f"not known: {', '.join(sorted(unknown))}; known: {', '.join(allowed)}")
    if absent := missing():
        options.error(f"not installed: {', '.join(absent)}; `make services` installs them")
    document: dict[str, Any] = {}
    well = False
    try:
        measure(chosen, document)
        well = True
    finally:
        document["medians"] = medians(document.get("runs", []))
        document["wrong"] = verdicts(document)
        text = json.dumps(document, indent=2)
        print(text)
        if chosen.record is not None:
            chosen.record.write_text(text + "\n")
        kept = folder.end(well=well)
        if kept is not None:
            say(f"logs: {kept}")
    say(f"\n{table(document['medians'])}\n")
    for one in document["ratios"]:
        say(
            f"{one['fleet']} {one['mode']}: {one['speed']} of {one['of']} (last of {one['rounds']} rounds: "
            f"{one['speed_last']}); CPU: product {one['product_cpu']}, database {one['database_cpu']}"
        )
    for name, rows in document.get("rows", {}).items():
        say(f"{name}: rows a delivery {rows}; idle, percent of a core {document['idle_percent'][name]}")
    say("\n".join(document["wrong"]) or "all held")
    sys.exit(1 if document["wrong"] else 0)


if __name__ == "__main__":
    main()
