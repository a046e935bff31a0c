"""Tables that fit the terminal: one line for each entry, and nothing important out of sight.

Where the terminal is too narrow for all columns, those of the highest rank are left out first, then long texts are cut,
then each entry becomes a small block. Ids are never cut: the next command needs them. `--wide` shows every column whole,
and so does a pipe.
"""

from __future__ import annotations

import os
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TextIO

from surehook.cli.output import STYLES, cell, paint
from surehook.core.redact import printable

GAP = 2  # blanks between two columns
INDENT = "  "
CUT = "…"


class Column(NamedTuple):
    """`rank`: 0 always stays, the highest is left out first. `least`: long texts may be cut to so many characters; 0: never."""

    name: str
    rank: int = 0
    least: int = 0


def terminal_width(stream: TextIO) -> int | None:
    """Width to fit into: COLUMNS, else that of the terminal; None where there is neither."""
    told = os.environ.get("COLUMNS", "")
    if told.isdigit() and int(told) > 0:
        return int(told)
    try:
        return os.get_terminal_size(stream.fileno()).columns if stream.isatty() else None
    except OSError:
        return None


def print_table(
    columns: Sequence[Column],
    rows: Iterable[Sequence[object]],
    *,
    wide: bool = False,
    stream: TextIO | None = None,
) -> None:
    """Print rows under a head, in the width of the terminal unless `wide`."""
    stream = stream or sys.stdout
    width = None if wide else terminal_width(stream)
    texts = [[printable(cell(value), chars=2_000) for value in row] for row in rows]
    for text in fitted(columns, texts, width, stream):
        stream.write(text + "\n")


def fitted(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None, stream: TextIO
) -> list[str]:
    """Lines of a table that is at most `width` wide, if that is possible."""
    needs = [
        max(length(text) for text in (column.name, *(row[at] for row in rows)))
        for at, column in enumerate(columns)
    ]
    kept = list(range(len(columns)))
    while width is not None and _least(columns, needs, kept) > width:
        leaving = max(kept, key=lambda at: (columns[at].rank, at))
        if columns[leaving].rank == 0:
            return _stacked(columns, rows, width, stream)
        kept.remove(leaving)
    widths = _shrunk(columns, needs, kept, width)
    head = [columns[at].name.upper() for at in kept]
    body = (_line([row[at] for at in kept], widths, stream) for row in rows)
    return [paint(_line(head, widths, stream), "dim", stream), *body]


def _least(columns: Sequence[Column], needs: Sequence[int], kept: Sequence[int]) -> int:
    """Least width of these columns. As long as a column can be left out, texts are not cut to their least."""
    ease = 2 if any(columns[at].rank for at in kept) else 1
    widths = [min(needs[at], columns[at].least * ease) if columns[at].least else needs[at] for at in kept]
    return sum(widths) + GAP * (len(kept) - 1)


def _shrunk(
    columns: Sequence[Column], needs: Sequence[int], kept: Sequence[int], width: int | None
) -> list[int]:
    """Widths of the kept columns: characters are taken from the widest one that may be cut."""
    widths = {at: needs[at] for at in kept}
    over = 0 if width is None else sum(widths.values()) + GAP * (len(kept) - 1) - width
    for _ in range(over):
        giving = max((at for at in kept if columns[at].least), key=lambda at: widths[at] - columns[at].least)
        widths[giving] -= 1
    return [widths[at] for at in kept]


def _line(texts: Sequence[str], widths: Sequence[int], stream: TextIO) -> str:
    parts = []
    for at, (text, width) in enumerate(zip(texts, widths, strict=True)):
        shown = cut(text, width)
        blanks = "" if at == len(texts) - 1 else " " * (width - length(shown))
        parts.append(_coloured(shown, stream) + blanks)
    return (" " * GAP).join(parts)


def _stacked(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int, stream: TextIO
) -> list[str]:
    """A block for each entry: its first column, then the others by name."""
    lines: list[str] = []
    for row in rows:
        lines.append(paint(row[0], "bold", stream))
        line = ""
        for column, text in zip(columns[1:], row[1:], strict=True):
            if text == "–":
                continue
            pair = f"{column.name} {text}"
            if line and length(INDENT + line + "  " + pair) > width:
                lines += _wrapped(line, width)
                line = ""
            line = f"{line}  {pair}" if line else pair
        lines += _wrapped(line, width)
    return lines


def _wrapped(text: str, width: int) -> list[str]:
    """A line of a block; a long one goes on below with a deeper indent."""
    return textwrap.wrap(
        text, width, initial_indent=INDENT, subsequent_indent=INDENT * 2, drop_whitespace=False
    )


def cut(text: str, width: int) -> str:
    """A text in at most `width` columns, with a sign where something is missing."""
    if length(text) <= width:
        return text
    while text and length(text) > width - 1:
        text = text[:-1]
    return text + CUT


def length(text: str) -> int:
    """Columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _coloured(text: str, stream: TextIO) -> str:
    colour = STYLES.get(text.split(" ")[0])
    return paint(text, colour, stream) if colour else text
