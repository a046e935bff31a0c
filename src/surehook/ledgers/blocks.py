"""Blocks: for each stretch of a table the values that occur in it, so that a list skips stretches without a match.

An index by every column that people filter by would cost each delivery more than its row. Blocks cost it nothing: they are
made afterwards, a group at a time, in the order of the ids. A group is `BLOCKS` blocks of `BLOCK_ROWS` rows each, and has for
every value in it the bits of the blocks in which it occurs. Groups are contiguous from the lowest id up to the mark. A list is
read block by block, newest first; a value that fifty of ten million rows have is found in fifty blocks.

The guarantee is that every row below the mark (by id) that was inserted before the mark's row number is in the bits of its
block. Rows above the mark are walked, and rows that came later below it are read by their row numbers. A bit too many costs a
look; one too few would hide a row. So bits are only ever added, until a group is made anew.
"""

from __future__ import annotations

from typing import NamedTuple

BLOCK_ROWS = 128
# Blocks of a group: the bits of an integer that stays positive.
BLOCKS = 62
# Rows left above the mark: the newest still change, since retries end later.
SETTLE_ROWS = 1_024
# Row numbers that a list reads at most; with more it walks.
LATE_MAX = 60_000
ID_BYTES = 16


class BlockTable(NamedTuple):
    """A table with blocks: its name, its key, and the columns whose values they have."""

    name: str
    key: str
    fields: tuple[str, ...]


LINES = BlockTable("attempt", "delivery", ("tenant", "endpoint", "type", "outcome", "end"))
# Fields whose values are bytes; the others are text.
IDS = frozenset(("endpoint",))
EVENTS = BlockTable("event", "id", ("tenant", "type"))


class Mark(NamedTuple):
    """The id and the row number up to which the blocks of a source are complete."""

    upto: bytes
    row: int
    turn: int


class Group(NamedTuple):
    """The bounds of a group's blocks: block n has ids from `edges[n]` on and below `edges[n + 1]`."""

    edges: tuple[bytes, ...]

    @staticmethod
    def read(first: bytes, cuts: bytes) -> Group:
        rest = (cuts[at : at + ID_BYTES] for at in range(0, len(cuts), ID_BYTES))
        return Group((first, *rest))

    @property
    def cuts(self) -> bytes:
        return b"".join(self.edges[1:])
