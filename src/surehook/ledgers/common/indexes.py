"""The bounds of ids, and the indexes that lists can use.

Of some indexes only rows below an id have entries: on PostgreSQL a day is indexed when it is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from surehook.core.limits import EVENT_ID_AHEAD_S

# Bounds of ids: nothing sorts before the first, and every id before the second.
LOWEST, HIGHEST = b"", b"\xff" * 17
# An id is at most this far ahead of the clock.
AHEAD_MS = EVENT_ID_AHEAD_S * 1_000
# Rows a page looks at before it comes back short, with a cursor: some ten milliseconds of reading.
LOOKS_MAX = 10_000
NO_COLUMNS: Mapping[str, bytes] = MappingProxyType({})


class ListIndexes(NamedTuple):
    """The indexes beside the keys.

    lines      by column: the id below which an index of last lines leads along its values in the order of ids
    line_looks last lines above that id that a page looks at; None: all of them
    events     by column: the id below which there is such an index of events
    event_looks events above that id that a page looks at; None: all of them
    blocks     there are blocks (`ledgers/blocks.py`) for every other filter
    receipts   there is an index of receipts by stage
    """

    lines: Mapping[str, bytes] = NO_COLUMNS
    line_looks: int | None = LOOKS_MAX
    events: Mapping[str, bytes] = NO_COLUMNS
    event_looks: int | None = LOOKS_MAX
    blocks: bool = False
    receipts: bool = False


NO_INDEXES = ListIndexes()
# On one SQLite file every row has an entry: of ends other than `delivered`, of receipts by stage, and in blocks.
IN_ONE_FILE = ListIndexes(lines=MappingProxyType({"end": HIGHEST}), blocks=True, receipts=True)
