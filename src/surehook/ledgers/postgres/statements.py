"""Statements of `queries/`, one a file, read once.

A plan of a hot statement is made once, perhaps while the tables are empty, and must be right when they hold
millions of rows. So the statements leave no choice. A batch of ids meets a table as `d.id >= v.id and d.id <= v.id`:
that can only be an index look-up for each id, while an equality may also become one walk over the whole index for
each (an empty table is walked for nothing; measured at 400 rows: 88 µs a row instead of 20). Where nothing is
locked or changed, `cross join lateral (… offset 0)` says the same. `is not distinct from` and row comparisons
keep other indexes out: those of all rows that a node holds, or of the key where the order of a parking group is asked.
`tests/ledgers/postgres/test_hot_plans.py` looks at each plan as it is made over empty tables.

What comes with every event and every result is unnested side by side in a select list, not in `from unnest(…, …)`:
that keeps each of its columns in a store of its own before the first row is read (accepting: 11.7 µs of the
database's CPU an event, instead of 9.7; recording: 8.7 instead of 7.6). Shorter arrays are filled up with nulls in both.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_COMMENT = re.compile(r"--[^\n]*")
_PART = re.compile(r"\{\{(\w+)\}\}")


@cache
def query(name: str) -> str:
    """The text of `queries/NAME.sql` on one line, without comments. `{{PART}}` in it is what several statements have in
    common: the text of `queries/parts/PART.sql`."""
    return _PART.sub(lambda part: _text("parts", f"{part[1]}.sql"), _text(f"{name}.sql"))


def _text(*path: str) -> str:
    text = files(__package__).joinpath("queries", *path).read_text()
    return " ".join(_COMMENT.sub("", text).split())


def read_all() -> None:
    """Read every file now: one that is first needed when no descriptor is left could not be read any more."""
    for file in files(__package__).joinpath("queries").iterdir():
        if file.name.endswith(".sql"):
            query(file.name.removesuffix(".sql"))
