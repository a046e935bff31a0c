"""Output of commands: data on stdout, everything else on stderr.

A terminal gets tables drawn by rich; anything else gets plain columns (or, with --json, one document),
so that a script never meets a colour code. NO_COLOR is obeyed. Ids are never cut.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TextIO

import typer

from surehook.cli import under_way

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]

_CODES = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "dim": "2", "bold": "1"}


def is_colourful(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str, stream: TextIO) -> str:
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if is_colourful(stream) else text


def note(text: str) -> None:
    """A remark for the person at the terminal."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def line(text: str = "") -> None:
    """One line of data."""
    sys.stdout.write(text + "\n")
    under_way.ended()


def document(value: Any) -> None:
    """One JSON document."""
    from msgspec.json import encode
    from msgspec.json import format as pretty

    sys.stdout.write(pretty(encode(value), indent=2).decode() + "\n")
    under_way.ended()


def facts(values: Mapping[str, Any], *, json: bool) -> None:
    """Names and values, one a line."""
    if json:
        document(values)
        return
    width = max(map(len, values), default=0)
    for name, value in values.items():
        line(f"{paint(name.ljust(width), 'dim', sys.stdout)}  {cell(value)}")


def cell(value: Any) -> str:
    """A value as a table shows it: absent is a dash, lists are joined, objects are name=value, what is
    inside them is JSON."""
    if value is None or value in ("", [], {}):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list):
        return ", ".join(_part(part) for part in value)
    if isinstance(value, dict):
        return "  ".join(f"{name}={_part(part)}" for name, part in value.items())
    return str(value)


def _part(value: Any) -> str:
    """A value inside a list or an object: what is nested deeper is JSON, since names and values would run together."""
    if not isinstance(value, dict | list) or not value:
        return cell(value)
    from msgspec.json import encode

    return encode(value).decode()


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, stream: TextIO | None = None) -> None:
    """Rows under a head. On a terminal by rich, with folded text; elsewhere plain columns."""
    stream = stream or sys.stdout
    body = [[cell(value) for value in row] for row in rows]
    if not stream.isatty():
        for text in _aligned([[column.upper() for column in columns], *body]):
            stream.write(text + "\n")
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        drawn.add_column(
            column, overflow="fold", no_wrap=column in ("id", "delivery", "event", "endpoint", "setting")
        )
    for row in body:
        drawn.add_row(*(Text(text, style=STYLES.get(text, "")) for text in row))
    Console(file=stream, no_color=not is_colourful(stream), highlight=False).print(drawn)


STYLES = {
    "delivered": "green", "active": "green", "closed": "green",
    "dead": "red", "open": "red", "failure": "red", "inactive": "red",
    "retrying": "yellow", "parked": "yellow", "paused": "yellow", "half_open": "yellow",
    "dropped": "dim", "cancelled": "dim",
}  # fmt: skip


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
