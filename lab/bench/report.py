"""Output for people and programs: progress on stderr, a table or one JSON document on stdout."""

from __future__ import annotations

import contextlib
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import msgspec

from lab.bench.figures import flat


class Terminal:
    """Progress on stderr: a moving line on a terminal, plain lines of the steps elsewhere."""

    def __init__(self, console: Any, status: Any) -> None:
        self._console = console
        self._status = status

    def step(self, text: str) -> None:
        """A new step begins."""
        if self._status is None:
            self._console.print(text, highlight=False, markup=False)
        else:
            self._status.update(text)

    def tick(self, text: str) -> None:
        """State of the step; of no use in a log file."""
        if self._status is not None:
            self._status.update(text)


@contextlib.contextmanager
def terminal() -> Iterator[Terminal]:
    """Progress for as long as a bench runs."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield Terminal(console, None)
        return
    with console.status("starting") as status:
        yield Terminal(console, status)


def document(results: list[dict[str, Any]]) -> bytes:
    """The results as one JSON list."""
    return msgspec.json.format(msgspec.json.encode(results), indent=2) + b"\n"


def show(results: list[dict[str, Any]], *, as_json: bool, out: pathlib.Path | None) -> None:
    """Print the results; write the document to `out` as well, where given."""
    if out is not None:
        out.write_bytes(document(results))
    if as_json:
        sys.stdout.buffer.write(document(results))
        sys.stdout.buffer.flush()
        return
    from rich.console import Console

    console = Console()
    for group in _groups(results):
        console.print(_table(group))


def _groups(results: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Neighbours with the same figures share a table."""
    groups: list[list[dict[str, Any]]] = []
    for result in results:
        if groups and groups[-1][0].keys() == result.keys():
            groups[-1].append(result)
        else:
            groups.append([result])
    return groups


def _table(group: list[dict[str, Any]]) -> Any:
    """One column per result, one line per figure: fits eighty columns with three results."""
    from rich.table import Table

    rows = [flat(result) for result in group]
    table = Table(show_header=True, header_style="bold", box=None, pad_edge=False)
    table.add_column("")
    for row in rows:
        table.add_column(str(row["scenario"]), justify="right")
    names = [name for name in dict.fromkeys(key for row in rows for key in row) if name != "scenario"]
    for name in names:
        table.add_row(name.replace("_", " "), *(_cell(row.get(name)) for row in rows))
    return table


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_cell(inner)}" for key, inner in value.items())
    return str(value)
