"""Progress on stderr: a live table on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from surehook.cli.output import is_colourful
from surehook.demo.plan import PARTS

STATES = ("scheduled", "sending", "retrying", "parked", "delivered", "dead")
# On a narrow terminal three states share a column.
FEW = {
    "waiting": ("scheduled", "sending", "retrying"), "parked": ("parked",), "delivered": ("delivered",),
    "dead": ("dead",),
}  # fmt: skip
ALL = {state: (state,) for state in STATES}
WIDE = 72  # columns of a terminal that all states need
STYLES = {
    "delivered": "green", "dead": "red", "parked": "yellow", "retrying": "yellow", "waiting": "yellow"
}  # fmt: skip
PLAIN_EVERY_S = 3.0


class ProgressDisplay:
    """`tell` notes what happens; `show` draws the present state. A context manager."""

    def __init__(self) -> None:
        self._live: Any = None
        self._last_plain_s = float("-inf")

    def __enter__(self) -> ProgressDisplay:
        if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            from rich.console import Console
            from rich.live import Live

            console = Console(stderr=True, no_color=not is_colourful(sys.stderr), highlight=False)
            self._live = Live(console=console, auto_refresh=False, transient=False)
            self._live.__enter__()
        return self

    def __exit__(self, *reason: object) -> None:
        if self._live is not None:
            self._live.__exit__(*reason)

    def tell(self, text: str, *, at_s: float) -> None:
        """One line that stays."""
        line = f"{at_s:5.1f} s  {text}"
        if self._live is not None:
            self._live.console.print(line, markup=False)
        else:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()

    def show(
        self, counts: Mapping[str, Mapping[str, int]], *, status: str, at_s: float, last: bool = False
    ) -> None:
        """The present counts: receiver by state."""
        if self._live is not None:
            table = _table(counts, f"{at_s:5.1f} s  {status}", self._live.console.width)
            self._live.update(table, refresh=True)
        elif last or at_s - self._last_plain_s >= PLAIN_EVERY_S:
            self._last_plain_s = at_s
            for line in _lines(counts) if last else [_line(counts, status)]:
                self.tell(line, at_s=at_s)


def _table(counts: Mapping[str, Mapping[str, int]], title: str, width: int) -> object:
    from rich import box
    from rich.table import Table

    columns = ALL if width >= WIDE else FEW
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    table.add_column("receiver", no_wrap=True)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for part in PARTS:
        found = counts.get(part.name, {})
        sums = {name: sum(found.get(state, 0) for state in states) for name, states in columns.items()}
        table.add_row(part.name, *(_styled(count, STYLES.get(name, "")) for name, count in sums.items()))
    return table


def _styled(count: int, style: str) -> Any:
    from rich.text import Text

    return Text(str(count) if count else "·", style=style if count else "dim")


def _line(counts: Mapping[str, Mapping[str, int]], status: str) -> str:
    parts = []
    for name, states in counts.items():
        total = sum(states.values())
        parts.append(f"{name} {states.get('delivered', 0)}/{total}")
    return f"{status}; delivered: {', '.join(parts)}"


def _lines(counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    head = "receiver".ljust(10) + "".join(state.rjust(11) for state in STATES)
    rows = [
        name.ljust(10) + "".join(str(states.get(state, 0)).rjust(11) for state in STATES)
        for name, states in counts.items()
    ]
    return [head, *rows]
