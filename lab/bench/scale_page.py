"""Write what `scale.py` recorded into docs/scaling.md: `python -m lab.bench.scale_page FILE…`.

A later file's figures stand in place of an earlier one's, but for those of pasts, which are listed together. The tables
between the page's marks are made anew, each of which has something to be made of.
"""
# ruff: noqa: T201 (a program that prints)

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

from lab import ROOT

PAGE = ROOT / "docs/scaling.md"
QUIET_CORES = 0.3  # used by others: beyond it a speed is theirs as much as ours
SHAPES = ("one", "split", "broker", "workers", "processes")
LOADS = ("single", "batch50", "paced")
PASTS = {
    "parked": "{:,} parked deliveries",
    "old": "{:,} old events with their attempts",
    "held_s": "a transaction held open for {:,.0f} s",
}
RATES = {
    1: "`one file`", 10: "`one file`", 100: "`one file` or `one`", 1_000: "`one`, a second process for safety",
    10_000: "`split` or `processes`", 100_000: "5 installations of `split`", 1_000_000: "50 installations of `split`",
}  # fmt: skip
HISTORY_BYTES, OUTSIDE_BYTES, INSIDE_BYTES = 1_200, 1_900, 2_000  # a delivery's; docs/scaling.md says of what


def cost(document: dict[str, Any]) -> str:
    """Cost of a delivery, for each set-up and load."""
    lines = {(line["fleet"], line["mode"]): line for line in document["medians"]}
    ratios = {(one["fleet"], one["mode"]): one for one in document["ratios"] if one["part"] == "shapes"}
    rows = [
        "| set-up | load | delivered/s | of `one` | ours | PostgreSQL | RabbitMQ | WAL | transactions | messages | p50 / p95 |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for shape in SHAPES:
        for load in LOADS:
            line, ratio = lines[shape, load], ratios.get((shape, load))
            quiet, paced = line["foreign_cores"] <= QUIET_CORES, load == "paced"
            ours = f"{line['product_cpu_us']:,.0f}"
            if "api_cpu_us" in line:
                ours += f" ({line['api_cpu_us']:,.0f} + {line['worker_cpu_us']:,.0f})"
            rows.append("| " + " | ".join([
                f"`{shape}`", load, f"{line['delivered_per_s']:,.0f}" if quiet or paced else "–",
                f"{ratio['speed']:.2f}" if ratio is not None and quiet else "–", ours, f"{line['database_cpu_us']:,.0f}",
                _or_none(line.get("broker_cpu_us"), "{:,.0f}"),
                "–" if paced else f"{line['wal_bytes']:,.0f}",  # at this rate most of it is vacuum's and other fleets'
                f"{line['transactions']:.2g}", _or_none(line.get("broker_messages"), "{:.2g}"),
                f"{line['arrival_p50_ms']:.0f} / {line['arrival_p95_ms']:.0f}" if paced else "–",
            ]) + " |")  # fmt: skip
    return (
        "\n".join(rows)
        + "\n\n"
        + origin(document, [run for run in document["runs"] if run["part"] == "shapes"])
    )


def idle(document: dict[str, Any]) -> str:
    """Rows touched, and what processes with nothing to do cost."""
    rows = ["| set-up | rows in / changed / out | idle, % of a core: ours | RabbitMQ |", "|---|---|---|---|"]
    processes = 0
    for shape in SHAPES:
        touched, used = document["rows"][shape], document["idle_percent"][shape]
        ours = [used[role] for role in ("both", "api", "worker") if role in used]
        rows.append(
            f"| `{shape}` | {touched['inserted']:.1f} / {touched['updated']:.1f} / {touched['deleted']:.1f} | "
            f"{' + '.join(f'{one:.1f}' for one in ours)} | {_or_none(used.get('broker'), '{:.1f}')} |"
        )
        processes += {"one": 1, "workers": 3}.get(shape, 2)
    database = document["idle_percent"][SHAPES[0]]["database"]
    return (
        "\n".join(rows)
        + f"\n\nPostgreSQL used {database:.1f} % of a core for all {processes} idle processes together."
    )


def past(documents: list[dict[str, Any]]) -> str:
    """Cost of a past, of all files that tell of one."""
    rows = [
        "| past | set-up | load | speed | CPU, ours | CPU, PostgreSQL | rounds | lost |",
        "|---|---|---|---|---|---|---|---|",
    ]
    kinds = {"parked": "parked", "history": "old", "snapshot": "held_s"}
    for document in documents:
        for one in document["ratios"]:
            kind, _, shape = one["part"].partition(" ")
            if kind in kinds:
                runs = [run for run in document["runs"] if run["part"] == one["part"]]
                lost, delivered = (sum(run[name] for run in runs) for name in ("lost", "delivered"))
                rows.append(
                    f"| {PASTS[kinds[kind]].format(document[kinds[kind]])} | `{shape}` | {one['mode']} | "
                    f"{one['speed']:.2f} | {one['product_cpu']:.2f} | {one['database_cpu']:.2f} | "
                    f"{one['rounds']} × {document['seconds']:g} s | {lost} of {delivered:,} |"
                )
    machine = documents[0]["machine"]
    where = f"{machine['cores']} cores, which also ran the load, the receiver and the servers; CPython {machine['python']}"
    return "\n".join(rows) + f"\n\nMedians of the rounds, `make bench-scale`, on a machine with {where}."


def sizing(document: dict[str, Any]) -> str:
    """Needs of rates, by arithmetic."""
    (line,) = [line for line in document["medians"] if (line["fleet"], line["mode"]) == ("split", "single")]
    ours, database, log = (round(line[name]) for name in ("product_cpu_us", "database_cpu_us", "wal_bytes"))
    rows = [
        "| deliveries a second | set-up | our cores | PostgreSQL's cores | log, MB/s | history, GB a day "
        "| network outside / to PostgreSQL, MB/s |",
        "|---|---|---|---|---|---|---|",
    ]
    for rate, setup in RATES.items():
        theirs = "–" if rate < 100 else f"{max(1, math.ceil(2 * rate * database / 1e6)):,}"
        rows.append(
            f"| {rate:,} | {setup} | {max(1, math.ceil(2 * rate * ours / 1e6)):,} | {theirs} | {_two(rate * log / 1e6)} | "
            f"{_two(rate * 86_400 * HISTORY_BYTES / 1e9)} | "
            f"{_two(rate * OUTSIDE_BYTES / 1e6)} / {_two(rate * INSIDE_BYTES / 1e6)} |"
        )
    return "\n".join(rows)


def origin(document: dict[str, Any], runs: list[dict[str, Any]]) -> str:
    """Place and manner of the measurement."""
    machine, foreign = document["machine"], sorted(run["foreign_cores"] for run in runs)
    others = foreign[len(foreign) // 2]
    said = (
        f"Medians of {document['rounds']} rounds of {document['seconds']:g} s, `make bench-scale`, on a machine with "
        f"{machine['cores']} cores, which also ran the load, the receiver and the servers; CPython {machine['python']}. "
        f"Lost: {sum(run['lost'] for run in runs)} of {sum(run['delivered'] for run in runs):,}."
    )
    if others > QUIET_CORES:
        said += (
            f" **Others used {others:.1f} of the cores meanwhile**: CPU figures are higher than they would be alone, and "
            "speeds are left out or mean little."
        )
    return said


def _or_none(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)


def _two(value: float) -> str:
    """Two digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def put(text: str, mark: str, table: str) -> tuple[str, int]:
    """The text with the table between the mark and its end, and how many such marks there are."""
    pattern = rf"(<!-- measured: {mark} -->\n).*?(\n<!-- end -->)"
    return re.subn(pattern, lambda hit: hit[1] + table + hit[2], text, flags=re.DOTALL)


def main() -> None:
    """Make the tables anew."""
    text = PAGE.read_text(encoding="utf-8")
    documents = [json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:]]
    made: dict[str, str] = {}
    for document in documents:
        if any(one["part"] == "shapes" for one in document["ratios"]):
            made |= {"cost": cost(document), "idle": idle(document), "sizing": sizing(document)}
    if pasts := [
        document for document in documents if any(one["part"] != "shapes" for one in document["ratios"])
    ]:
        made["past"] = past(pasts)
    for mark, table in made.items():
        text, found = put(text, mark, table)
        print(f"{mark}: {'written' if found else 'the page has no such mark'}")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
