"""Making blocks (`ledgers/blocks.py`): each step looks on the reading session, and then writes.

A look reads one snapshot, and the writer takes over afterwards, so rows may come in between. They have higher row numbers
than the look has seen, and the next step looks at them. Only if row numbers were given back (the newest rows were pruned)
has the mark changed, and the step is made again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import json

from surehook.ledgers.blocks import (
    BLOCK_ROWS,
    BLOCKS,
    EVENTS,
    IDS,
    LINES,
    SETTLE_ROWS,
    BlockTable,
    Group,
    Mark,
)
from surehook.ledgers.common.indexes import HIGHEST, LOWEST
from surehook.ledgers.sqlite.rows import run_batch
from surehook.ledgers.sqlite.session import SqliteSession
from surehook.ledgers.sqlite.statements import query

# Row numbers that one step looks through.
LATE_ROWS = 4_000
_SOURCES = {
    LINES: ("block_lines", "late_lines", "last_line", "some_lines"),
    EVENTS: ("block_events", "late_events", "last_event", "some_events"),
}
_hex = bytes.fromhex

Rows = list[list[Any]]
# By group, field and value.
Bits = dict[tuple[bytes, str, bytes], int]


class Stretch(NamedTuple):
    """Ids from `low` on and below `high`."""

    low: bytes
    high: bytes


class BlockWrites(NamedTuple):
    """The writes of one step: the mark before and after it, groups to delete, a group to insert, and bits."""

    source: BlockTable
    before: Mark
    upto: bytes
    row: int
    bits: Bits
    gone: tuple[bytes, ...] = ()
    made: Group | None = None


class Blocks:
    """Makes the steps, one after another.

    Old groups are looked at once after retention has removed rows. `_place` is the position of that pass, and `_passes`
    counts how many times it still has to reach the end.
    """

    def __init__(self, *, block_rows: int = BLOCK_ROWS, settle_rows: int = SETTLE_ROWS) -> None:
        self._block_rows = block_rows
        self._group_rows = BLOCKS * block_rows
        self._settle_rows = settle_rows
        self._place = dict.fromkeys(_SOURCES, LOWEST)
        self._passes = dict.fromkeys(_SOURCES, 0)
        # The mark and the last row with which there was nothing to do.
        self._seen: dict[BlockTable, tuple[Mark, int]] = {}

    def shrank(self) -> None:
        """Look for groups to merge: retention has removed rows."""
        for source, place in self._place.items():
            self._passes[source] = 1 if place == LOWEST else 2

    def look(self, session: SqliteSession) -> BlockWrites | None:
        """Prepare the next step; None if there is nothing to do for now."""
        with session.snapshot():
            for source in _SOURCES:
                mark = mark_of(session, source)
                seen = mark, last_row(session, source)
                if seen == self._seen.get(source):
                    # No row has come.
                    continue
                step = _late(session, source, mark) or self._next(session, source, mark)
                if step is not None:
                    return step
                self._seen[source] = seen
            for source in _SOURCES:
                step = self._merge(session, source)
                if step is not None:
                    return step
        return None

    def _next(self, session: SqliteSession, source: BlockTable, mark: Mark) -> BlockWrites | None:
        """Make the next group if enough rows lie above it."""
        wanted = self._group_rows + self._settle_rows
        if _some(session, source, mark.upto, HIGHEST, wanted) < wanted:
            return None
        rows = _read(session, source, (mark.upto, HIGHEST, wanted))
        if len(rows) < wanted:
            # The others are not last lines of their deliveries.
            return None
        made, end = rows[: self._group_rows], _hex(rows[self._group_rows][0])
        return self._made(source, mark, Stretch(mark.upto, end), made, upto=end)

    def _merge(self, session: SqliteSession, source: BlockTable) -> BlockWrites | None:
        """Merge two groups if their remaining rows fit into one. Each call looks at one pair."""
        if not self._passes[source]:
            return None
        group = session.row(query("block_group"), (source.name, self._place[source]))
        after = group and session.row(query("block_next"), (source.name, group[0]))
        if group is None or after is None:
            self._place[source] = LOWEST
            self._passes[source] -= 1
            return None
        span = Stretch(group[0], Group.read(*after).edges[-1])
        if _some(session, source, *span, self._group_rows + 1) > self._group_rows:
            self._place[source] = after[0]
            return None
        mark, rows = mark_of(session, source), _read(session, source, (*span, self._group_rows))
        return self._made(source, mark, span, rows, upto=mark.upto, gone=(group[0], after[0]))

    def _made(
        self,
        source: BlockTable,
        mark: Mark,
        span: Stretch,
        rows: Rows,
        *,
        upto: bytes,
        gone: tuple[bytes, ...] = (),
    ) -> BlockWrites:
        """Make the step that writes one group of these rows, which are all of the span."""
        cuts = [_hex(row[0]) for row in rows[self._block_rows :: self._block_rows]]
        group = Group((span.low, *cuts, span.high))
        found = _bits(source, ((span.low, at // self._block_rows, row) for at, row in enumerate(rows)))
        return BlockWrites(source, mark, upto, mark.row, found, gone, group)


def mark_of(session: SqliteSession, source: BlockTable) -> Mark:
    return Mark(*session.rows(query("block_mark"), (source.name,))[0])


def keep(session: SqliteSession, step: BlockWrites) -> bool:
    """Write a step; False if row numbers were given back since its look."""
    name, before = step.source.name, step.before
    with session.writing():
        is_as_seen = session.run(query("block_advance"), (step.upto, step.row, name, *before)) > 0
        if is_as_seen:
            for first in step.gone:
                session.run(query("block_drop"), (name, first))
                session.run(query("block_drop_bits"), (name, first))
            if step.made is not None:
                session.run(query("block_keep"), (name, step.made.edges[0], step.made.cuts))
            rows = ((name, *key, bits) for key, bits in step.bits.items())
            run_batch(session, "block_add", [value for row in rows for value in row])
    return is_as_seen


def give_back(session: SqliteSession, source: BlockTable, last_before: int) -> None:
    """Note in the same transaction that the newest rows were removed, so that reused row numbers are looked at again."""
    last = last_row(session, source)
    if last < last_before:
        session.run(query("block_turn"), (last, source.name))


def last_row(session: SqliteSession, source: BlockTable) -> int:
    """Return the number of the newest row."""
    return int(session.value(query(_SOURCES[source][2])))


def _late(session: SqliteSession, source: BlockTable, mark: Mark) -> BlockWrites | None:
    """Make the step for rows that came after the mark's row number and lie below the mark."""
    upto = min(last_row(session, source), mark.row + LATE_ROWS)
    if upto <= mark.row:
        return None
    late = _read(session, source, (mark.row, upto, mark.upto), late=True)
    return BlockWrites(source, mark, mark.upto, upto, _bits(source, _placed(session, source, late)))


def _placed(
    session: SqliteSession, source: BlockTable, rows: Rows
) -> Iterator[tuple[bytes, int, Sequence[object]]]:
    """Yield each row with its group and block."""
    group: Group | None = None
    for row in sorted(rows, key=lambda row: str(row[0])):
        id = _hex(row[0])
        if group is None or id >= group.edges[-1]:
            found = session.row(query("block_group"), (source.name, id))
            assert found is not None, "groups stand end to end from the lowest id"
            group = Group.read(*found)
        yield group.edges[0], bisect_right(group.edges, id) - 1, row


def _bits(source: BlockTable, placed: Iterable[tuple[bytes, int, Sequence[Any]]]) -> Bits:
    """Compute the bits of rows. Ids are text here, and become bytes once per value."""
    bits: dict[tuple[bytes, str, str], int] = defaultdict(int)
    for first, block, (_, *values) in placed:
        bit = 1 << block
        for field, value in zip(source.fields, values, strict=True):
            if value is not None:
                bits[first, field, value] |= bit
    return {
        (first, field, _hex(value) if field in IDS else value.encode()): found
        for (first, field, value), found in bits.items()
    }


def _some(session: SqliteSession, source: BlockTable, low: bytes, high: bytes, most: int) -> int:
    """Count the rows of a span, up to `most`."""
    return int(session.value(query(_SOURCES[source][3]), (low, high, most)))


def _read(
    session: SqliteSession, source: BlockTable, parameters: tuple[object, ...], *, late: bool = False
) -> Rows:
    """Read the id and the fields of each row."""
    rows: Rows = json.decode(session.value(query(_SOURCES[source][1 if late else 0]), parameters))
    return rows
