"""Hot statements: one per file under `queries/`, written for whole batches.

While the event loop's thread is busy, every `sqlite3_step` costs the writer up to one switch interval to get the
interpreter back. A transaction must therefore take few steps, however large its batch: 64 rows by `executemany` took
100 ms, the same rows in one statement a few. So a file may contain the marker

    {rows:N}        (?, …), (?, …), …    rows of N parameters each

which is expanded to one of a few sizes and cut to the batch by the `limit ?` that must follow it. Rows past the batch are
filled with 0, the cheapest value to bind, and the limit keeps them from being read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeAlias

from surehook.ledgers.common.statements import names, read_shared, read_text

# Values to bind, of any type that SQLite stores: of rows one after another, and of other parameters.
Values: TypeAlias = list[Any]
Parameters: TypeAlias = tuple[object, ...]
# Few enough that all stay prepared, and close enough that less than half of the rows are padding.
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
_MARKER = re.compile(r"\{rows:(\d+)\}")


@cache
def query(name: str) -> str:
    """Return the text of `queries/NAME.sql` on one line, without comments."""
    return read_text(__package__, f"{name}.sql")


def read_all() -> None:
    """Read every file now.

    Once no descriptor is left, or while the package is being replaced, a file can no longer be read, and a writer that
    needed it would stop.
    """
    read_shared()
    for name in names(__package__):
        query(name)


class Batch:
    """A statement with a `{rows:N}` marker, expanded to the sizes used so far."""

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
        self, values: Values, *, before: Parameters = (), after: Parameters = ()
    ) -> Iterator[tuple[str, Values]]:
        """Yield the statements for `values`, which holds the rows one after another, and their parameters.

        The padding may be appended to `values`: the caller must not use it again.
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
    """Return the batch statement of `queries/NAME.sql`."""
    return Batch(name)
