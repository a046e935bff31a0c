"""Hot statements: one a file under `queries/`, written for whole batches.

While the event loop's thread is busy, every `sqlite3_step` costs the writer up to one switch interval
to get the interpreter back, so a transaction must take a handful of steps whatever its batch: 64 rows by
`executemany` took 100 ms, the same rows in one statement a few. Therefore a file may contain the marker

    {rows:N}        (?, …), (?, …), …    N places each

which is expanded for a size class and cut again by the `limit ?` that must follow it. Places past the
batch are filled with 0, the cheapest value to bind; the limit keeps them from being looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

# Few enough to stay prepared, close enough that padding costs less than half of the rows it fills.
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
_MARKER = re.compile(r"\{rows:(\d+)\}")
_COMMENT = re.compile(r"--[^\n]*")


@cache
def query(name: str) -> str:
    """The text of `queries/NAME.sql` on one line, without comments."""
    text = files(__package__).joinpath("queries", f"{name}.sql").read_text()
    return " ".join(_COMMENT.sub("", text).split())


def read_all() -> None:
    """Read every file now. A statement that is first needed when no descriptor is left, or while the package is being
    replaced, could not be read any more, and its writer would stop."""
    for file in files(__package__).joinpath("queries").iterdir():
        if file.name.endswith(".sql"):
            query(file.name.removesuffix(".sql"))


class Batch:
    """A statement with a `{rows:N}` marker, in as many sizes as were needed."""

    def __init__(self, name: str) -> None:
        self._template = query(name)
        marker = _MARKER.search(self._template)
        assert marker is not None, f"{name} has no rows"
        self._marker = marker[0]
        self._places = int(marker[1])
        self._row = "(" + ",".join("?" * self._places) + ")"
        self._sized: dict[int, str] = {}
        self._class_of = [next(size for size in SIZES if size >= count) for count in range(SIZES[-1] + 1)]

    def pieces(
        self, values: list[Any], *, before: tuple[Any, ...] = (), after: tuple[Any, ...] = ()
    ) -> Iterator[tuple[str, list[Any]]]:
        """Statements and their parameters for `values`, the rows' places one after another.

        `values` is used up: the padding may be appended to it.
        """
        step = SIZES[-1] * self._places
        for start in range(0, len(values), step):
            part = values if len(values) <= step else values[start : start + step]
            count = len(part) // self._places
            size = self._class_of[count]
            parameters = [*before, *part] if before else part
            if size > count:
                parameters.extend([0] * ((size - count) * self._places))
            parameters.append(count)
            parameters.extend(after)
            yield self._sized.get(size) or self._expanded(size), parameters

    def _expanded(self, size: int) -> str:
        self._sized[size] = text = self._template.replace(self._marker, ",".join([self._row] * size))
        return text


@cache
def batch(name: str) -> Batch:
    """The batch statement of `queries/NAME.sql`."""
    return Batch(name)
