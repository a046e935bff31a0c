"""Blocks: which values occur in which stretch of a table, so that a list passes over what has nothing for it.

An index by every column that people filter by would cost each delivery more than its line does. Blocks cost it nothing:
they are made afterwards, a group at a time, in the order of the ids. A group is `BLOCKS` stretches of `BLOCK_ROWS` rows
each, and says of every value that occurs in it, in which of its blocks. Groups stand end to end from the lowest id up to
the mark. What a list asks for is then read block by block, newest first; a value that fifty of ten million rows have is
found in fifty blocks.

What is told is that every row below the mark (by id) that was inserted before the mark's row number is in the bits of
its block. Rows above the mark are walked, and those that came later below it are looked through by their row numbers.
A bit too many costs a look, and one too few would hide a row: so bits are only ever added, until a group is made anew.
"""

from __future__ import annotations

from typing import NamedTuple

BLOCK_ROWS = 128
BLOCKS = 62  # in a group: the bits of a whole number that stays positive
SETTLE_ROWS = 1_024  # above the mark: the newest still change, since retries end later
LATE_MAX = 60_000  # row numbers that a list looks through at most; where there are more, it walks
ID_BYTES = 16


class Source(NamedTuple):
    """A table with blocks: its name, its key, and the columns whose values are kept."""

    name: str
    key: str
    fields: tuple[str, ...]


LINES = Source("attempt", "delivery", ("tenant", "endpoint", "type", "outcome", "end"))
IDS = frozenset(("endpoint",))  # fields whose values are bytes; others are text
EVENTS = Source("event", "id", ("tenant", "type"))


class Mark(NamedTuple):
    """How far the blocks of a source tell everything."""

    upto: bytes
    row: int
    turn: int


class Group(NamedTuple):
    """Where the blocks of a group lie: block n from `edges[n]` on and below `edges[n + 1]`."""

    edges: tuple[bytes, ...]

    @staticmethod
    def read(first: bytes, cuts: bytes) -> Group:
        rest = (cuts[at : at + ID_BYTES] for at in range(0, len(cuts), ID_BYTES))
        return Group((first, *rest))

    @property
    def cuts(self) -> bytes:
        return b"".join(self.edges[1:])
