"""Reading a list by blocks (`ledgers/blocks.py`), which tell where its rows may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    and_,
    bindparam,
    func,
    literal,
    literal_column,
    select,
)

from surehook.ledgers import schema
from surehook.ledgers.blocks import LATE_MAX, BlockTable, Group, Mark
from surehook.ledgers.common.indexes import LOWEST
from surehook.ledgers.common.paging import PageSource as Rows
from surehook.ledgers.common.paging import Span, look_down
from surehook.ledgers.common.steps import Again, Row, Steps

# Blocks that a page looks into: eight thousand rows.
BLOCKS_MAX = 64
_LOW, _HIGH = bindparam("low", LOWEST, schema.Id), bindparam("high", LOWEST, schema.Id)
_mark, _group, _bits = schema.block_mark, schema.block_group, schema.block_bits

# The values that a row must have, by field.
Values = Mapping[str, str | bytes]


class Spots(NamedTuple):
    """Spans that may hold rows, newest first. Blocks were read down to `lowest`."""

    spans: list[Span]
    lowest: bytes


def read(
    source: BlockTable,
    values: Values,
    span: Span,
    listing: Select[Any],
    key: ColumnElement[bytes],
    made: Callable[[Row], object],
    *,
    limit: int,
) -> Steps[Rows]:
    """Read the rows of `listing` in a span, newest first: above the mark, late ones below it, and block by block."""
    listed = listing.order_by(key.desc())
    mark = yield from _marked(source)
    above = span if mark is None else span.cut(low=mark.upto)
    upper = Rows([], LOWEST)
    if above.low < above.high:
        lowest = yield from look_down(key, above)
        found = yield listed.where(*above.cut(low=lowest).of(key)).limit(limit + 1)
        upper = Rows.read([made(row) for row in found], lowest, limit)
    if mark is None or upper.lowest != LOWEST:
        return upper
    below = span.cut(high=mark.upto)
    found = yield _late(source, mark, below, listing).limit(limit + 1)
    late = Rows.read([made(row) for row in found], None, limit)
    spots = yield from _spots(source, values, below)
    lower: list[object] = []
    stretch = listed.where(key >= _LOW, key < _HIGH).limit(limit + 1)
    for one in spots.spans:
        found = yield Again(stretch, {"low": one.low, "high": one.high})
        lower += [made(row) for row in found]
        if len(lower) > limit:
            break
    blocks = Rows.read(lower, spots.lowest, limit)
    # A late row may also lie in one of the blocks.
    both = {one.id: one for one in (*late.found, *blocks.found)}
    return Rows([*upper.found, *both.values()], max(late.lowest, blocks.lowest))


def _marked(source: BlockTable) -> Steps[Mark | None]:
    """Read the mark; None if so many rows have come since that walking is quicker."""
    row_number: ColumnElement[int] = literal_column(f"{source.name}.rowid")
    last = select(func.max(row_number)).select_from(schema.metadata.tables[source.name]).scalar_subquery()
    marks = select(_mark.c.upto, _mark.c.row, _mark.c.turn, last).where(_mark.c.source == source.name)
    ((upto, row, turn, newest),) = yield marks
    return None if upto == LOWEST or (newest or 0) - row > LATE_MAX else Mark(upto, row, turn)


def _late(source: BlockTable, mark: Mark, span: Span, listing: Select[Any]) -> Select[Any]:
    """Select rows of a span that came after the mark's row number. `+` keeps SQLite from using the index of the key."""
    key: ColumnElement[bytes] = literal_column(f"+{source.name}.{source.key}", schema.Id)
    row_number: ColumnElement[int] = literal_column(f"{source.name}.rowid")
    low, high = literal(span.low, schema.Id), literal(span.high, schema.Id)
    return listing.where(row_number > mark.row, key >= low, key < high).order_by(key.desc())


def _spots(source: BlockTable, values: Values, span: Span) -> Steps[Spots]:
    """Find the parts of a span in which all values occur, up to `BLOCKS_MAX` blocks. The span lies below the mark."""
    if span.low >= span.high:
        return Spots([], LOWEST)
    begins = select(func.max(_group.c.first)).where(
        _group.c.source == source.name, _group.c.first <= span.low
    )
    (begin,) = (yield begins)[0]
    lines, bits = _joined(source, values)
    listing = select(_group.c.first, _group.c.cuts, bits).select_from(lines)
    within = (_group.c.source == source.name, *Span(begin or LOWEST, span.high).of(_group.c.first), bits != 0)
    found = yield listing.where(*within).order_by(_group.c.first.desc()).limit(BLOCKS_MAX)
    blocks = [
        block
        for first, cuts, has in found
        for block in _blocks(Group.read(first, cuts), has)
        if block.low < span.high and block.high > span.low
    ]
    is_all = len(found) < BLOCKS_MAX and len(blocks) <= BLOCKS_MAX
    blocks = blocks[:BLOCKS_MAX]
    return Spots(_joined_up(blocks, span), LOWEST if is_all else max(blocks[-1].low, span.low))


def _joined(source: BlockTable, values: Values) -> tuple[FromClause, ColumnElement[int]]:
    """Join groups with the bits of every value. Also return the bits that all values share."""
    lines: FromClause = _group
    common: ColumnElement[int] | None = None
    for number, (field, value) in enumerate(values.items()):
        its = _bits.alias(f"b{number}")
        raw = value.encode() if isinstance(value, str) else value
        is_its = and_(
            its.c.source == source.name,
            its.c.first == _group.c.first,
            its.c.field == field,
            its.c.value == raw,
        )
        lines = lines.join(its, is_its)
        common = its.c.bits if common is None else common.op("&")(its.c.bits)
    assert common is not None, "without a value every row may match"
    return lines, common


def _blocks(group: Group, bits: int) -> list[Span]:
    """Return the blocks whose bit is set, newest first."""
    edges = group.edges
    return [Span(edges[n], edges[n + 1]) for n in range(len(edges) - 2, -1, -1) if bits >> n & 1]


def _joined_up(blocks: Sequence[Span], span: Span) -> list[Span]:
    """Merge adjacent blocks, and cut them to the span."""
    spans: list[Span] = []
    for block in blocks:
        if spans and spans[-1].low == block.high:
            spans[-1] = Span(block.low, spans[-1].high)
        else:
            spans.append(block)
    return [each.cut(low=span.low, high=span.high) for each in spans]
