"""Statements of `queries/`, one per file, read once.

The plan of a hot statement is made once, perhaps while the tables are empty, and must be right when they hold millions of
rows. So the statements leave the planner no choice. A batch of ids is joined to a table by `d.id >= v.id and d.id <= v.id`,
which can only be an index look-up per id. An equality may also become a walk over the whole index for each id (free on an
empty table; measured at 400 rows: 88 µs per row instead of 20). If nothing is locked or changed, `cross join lateral
(… offset 0)` has the same effect. `is not distinct from` and row comparisons keep out other indexes: that of all rows a node
holds, or the key where the order of a parking group is wanted. `tests/ledgers/postgres/test_hot_plans.py` checks each plan
as it is made over empty tables.

The arrays of every event and every result are unnested side by side in a select list, not in `from unnest(…, …)`, which
materializes each column before the first row is read (accepting: 11.7 µs of the database's CPU per event instead of 9.7;
recording: 8.7 instead of 7.6). Both fill up shorter arrays with nulls.
"""

from __future__ import annotations

import re
from functools import cache

from surehook.ledgers.common.statements import names, read_shared, read_text

_PART = re.compile(r"\{\{(\w+)\}\}")


@cache
def query(name: str) -> str:
    """Return the text of `queries/NAME.sql` on one line, without comments.

    `{{PART}}` in it is replaced by `queries/parts/PART.sql`, which several statements share.
    """
    text = read_text(__package__, f"{name}.sql")
    return _PART.sub(lambda part: read_text(__package__, "parts", f"{part[1]}.sql"), text)


def read_all() -> None:
    """Read every file now: once no descriptor is left, a file can no longer be opened."""
    read_shared()
    for name in names(__package__):
        query(name)
