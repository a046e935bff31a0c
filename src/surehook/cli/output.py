"""Output of commands: data on stdout, everything else on stderr.

Colours are for terminals only, so that a script never meets a colour code, and NO_COLOR is obeyed. Lists are printed by
`tables.py`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Annotated, Any, TextIO

import typer

from surehook.cli import pending_call

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]

# A JSON object of the API. Each command knows the fields of its own; clients have no types for them.
ApiObject = dict[str, Any]

_CODES = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "dim": "2", "bold": "1"}


def is_colourful(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str, stream: TextIO) -> str:
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if is_colourful(stream) else text


def note(text: str) -> None:
    """Print a remark for the person at the terminal, on stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def line(text: str = "") -> None:
    """Print one line of data."""
    sys.stdout.write(text + "\n")
    pending_call.clear()


def document(value: object) -> None:
    """Print one JSON document."""
    from msgspec.json import encode
    from msgspec.json import format as pretty

    sys.stdout.write(pretty(encode(value), indent=2).decode() + "\n")
    pending_call.clear()


def print_record(values: Mapping[str, object], *, json: bool) -> None:
    """Print one record: names and values, one a line."""
    if json:
        document(values)
        return
    width = max(map(len, values), default=0)
    for name, value in values.items():
        line(f"{paint(name.ljust(width), 'dim', sys.stdout)}  {cell(value)}")


def cell(value: object) -> str:
    """Text of a value: a dash if absent, lists joined, objects as name=value, values inside them as JSON."""
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


def _part(value: object) -> str:
    """Text of a value inside a list or an object; deeper ones are JSON, since names and values would run together."""
    if not isinstance(value, dict | list) or not value:
        return cell(value)
    from msgspec.json import encode

    return encode(value).decode()


STYLES = {
    "delivered": "green", "active": "green", "closed": "green",
    "dead": "red", "open": "red", "failure": "red", "inactive": "red",
    "retrying": "yellow", "parked": "yellow", "paused": "yellow", "half_open": "yellow",
    "dropped": "dim", "cancelled": "dim",
}  # fmt: skip
