"""Deliveries found through their events: by receipt, subject or correlation.

An index leads to the events, newest first, and the deliveries of an event are one short range of ids. Walking deliveries and
looking up the event or receipt of each would read all of them to find a few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, LargeBinary, Select, bindparam, cast, func, literal, or_, select

from surehook.core.ids import SHARED_BYTES, delivery_range
from surehook.core.receipt import Stage, rank
from surehook.ledgers import schema
from surehook.ledgers.common.conditions import told_code
from surehook.ledgers.common.indexes import LOWEST
from surehook.ledgers.common.paging import PageSource, Span, look_down
from surehook.ledgers.common.steps import Again, Row, Steps
from surehook.ledgers.common.subjects import of_every_tenant

# Appended to the prefix that an event shares with its deliveries, it is above every id with that prefix.
_REST = b"\xff" * 7
_LOW, _HIGH = bindparam("low", LOWEST, schema.Id), bindparam("high", LOWEST, schema.Id)
_event, _receipt, _dead = schema.event, schema.receipt, schema.dead_letter
# So many receipts are all looked at, in some 30 ms.
FEW_RECEIPTS = 10_000
# Receipts of one event that are looked at; it may have one per endpoint.
RECEIPTS_MAX = 64


class Chosen(NamedTuple):
    """Ranges of deliveries, newest first. Every match at or above `lowest` is in one of them."""

    spans: list[Span]
    lowest: bytes


def by_receipt(stage: Stage, span: Span, *, limit: int) -> Steps[Chosen]:
    """Choose the newest events whose receivers have reached this stage and no higher one."""
    key: ColumnElement[bytes] = _receipt.c.event
    its = _receipt.c.stage == rank(stage)
    # Spelled as in the condition of the partial index.
    is_told = _receipt.c.stage > 0
    found = yield _newest_of(key, _of_events(span), [its, is_told], limit)
    return _chosen(found, span, is_end=len(found) < limit)


def by_code(code: str, stage: Stage | None, span: Span, *, limit: int) -> Steps[Chosen]:
    """Choose the newest events with a receipt that has this code.

    There is no index by code, so the receipts that a page looks at are bounded; with a stage, those of the stage.
    """
    key: ColumnElement[bytes] = _receipt.c.event
    its = [] if stage is None else [_receipt.c.stage == rank(stage), _receipt.c.stage > 0]
    events = _of_events(span)
    lowest = yield from look_down(key, events, its)
    found = yield _newest_of(key, events.cut(low=lowest), [*its, told_code(code)], limit)
    if lowest is not None and len(found) < limit:
        # Some receipts of the event at the bound may lie below it, so the page ends at the event above.
        return Chosen(_spans(found, span), max(lowest[:SHARED_BYTES] + _REST, span.low))
    return _chosen(found, span, is_end=len(found) < limit)


def by_correlation(correlation_id: str, span: Span, *, limit: int) -> Steps[Chosen]:
    """Choose the newest events of a correlation, along an index that is maintained with every event."""
    key: ColumnElement[bytes] = _event.c.id
    found = yield _newest_of(key, _of_events(span), [_event.c.correlation_id == correlation_id], limit)
    return _chosen(found, span, is_end=len(found) < limit)


def dead_by_receipt(stage: Stage, span: Span, *, limit: int) -> Steps[Chosen]:
    """Choose the newest dead letters whose event a receiver has brought to this stage and no higher one.

    If such receipts are few, they are walked, otherwise the dead letters. Only the chosen ones are read afterwards, since the
    line of a dead letter lies anywhere among all lines.
    """
    key: ColumnElement[bytes] = _receipt.c.event
    its = [_receipt.c.stage == rank(stage), _receipt.c.stage > 0]
    events = _of_events(span)
    if (yield from look_down(key, events, its, rows=FEW_RECEIPTS)) is None:
        is_dead = (
            select(1).where(*_of_one_event(_dead.c.delivery, key)).limit(1).scalar_subquery().is_not(None)
        )
        found = yield _newest_of(key, events, [*its, is_dead], limit)
        return _chosen(found, span, is_end=len(found) < limit)
    letter: ColumnElement[bytes] = _dead.c.delivery
    lowest = yield from look_down(letter, span)
    found = yield _newest_of(letter, span.cut(low=lowest), [_may_be_told(letter, stage)], limit)
    spans = [Span(row[0], row[0] + b"\x00") for row in found]
    if len(found) == limit:
        lowest = found[-1][0]
    return Chosen(spans, LOWEST if lowest is None else lowest)


def _may_be_told(delivery: ColumnElement[bytes], stage: Stage) -> ColumnElement[bool]:
    """Make the condition that a receiver of the event has reached a stage. With many receivers it is always true."""
    listing = select(_receipt.c.stage).where(*_of_one_event(_receipt.c.event, delivery)).correlate(_dead)
    first = listing.limit(RECEIPTS_MAX).subquery()
    has = select(1).select_from(first).where(first.c.stage == rank(stage)).limit(1).scalar_subquery()
    more = listing.limit(1).offset(RECEIPTS_MAX).scalar_subquery()
    return or_(has.is_not(None), more.is_not(None))


def _of_one_event(key: ColumnElement[bytes], other: ColumnElement[bytes]) -> list[ColumnElement[bool]]:
    """Match ids that begin like another one. SQLite takes concatenated bytes for text, hence the cast."""
    shared = func.substr(other, 1, SHARED_BYTES, type_=LargeBinary)
    return [key >= shared, key <= cast(shared.concat(literal(_REST, LargeBinary)), LargeBinary)]


def by_subject(
    subject: str,
    span: Span,
    *,
    tenant: str | None,
    in_one_file: bool,
    indexed_below: bytes,
    looks: int | None,
    limit: int,
) -> Steps[Chosen | None]:
    """Choose the newest events of a subject; None: no index leads to them.

    Below `indexed_below` there is an index by subject alone (of days that are over). Of the events above it, `looks` are
    looked at (None: all).
    """
    key: ColumnElement[bytes] = _event.c.id
    listing, events = select(key), _of_events(span)
    if tenant is None and in_one_file:
        each = yield from of_every_tenant(subject, listing, events, limit=limit)
        return None if each is None else _chosen(each, span, is_end=len(each) < limit)
    walk = [_event.c.subject == subject]
    if tenant is not None:
        walk.append(_event.c.tenant == tenant)
        indexed_below = events.high
    above, below = events.cut(low=indexed_below), events.cut(high=indexed_below)
    found: Sequence[Row] = []
    if above.low < above.high:
        lowest = yield from look_down(key, above, rows=looks)
        found = yield _newest_of(key, above.cut(low=lowest), walk, limit)
        if lowest is not None and len(found) < limit:
            return Chosen(_spans(found, span), max(lowest[:SHARED_BYTES] + _REST, span.low))
    if len(found) < limit and below.low < below.high:
        found = [*found, *(yield _newest_of(key, below, walk, limit - len(found)))]
    return _chosen(found, span, is_end=len(found) < limit)


def read(
    chosen: Chosen,
    span: Span,
    listing: Select[Any],
    key: ColumnElement[bytes],
    made: Callable[[Row], object],
    *,
    limit: int,
) -> Steps[PageSource]:
    """Read a listing of deliveries in the chosen ranges, cut to a span."""
    of_one = listing.where(key >= _LOW, key < _HIGH).order_by(key.desc()).limit(limit + 1)
    found: list[object] = []
    for one in chosen.spans:
        low, high = one.cut(low=span.low, high=span.high)
        if low < high:
            found += [made(row) for row in (yield Again(of_one, {"low": low, "high": high}))]
        if len(found) > limit:
            break
    return PageSource.read(found, chosen.lowest, limit)


def _newest_of(
    key: ColumnElement[bytes], span: Span, its: Sequence[ColumnElement[bool]], limit: int
) -> Select[Any]:
    return select(key).where(*its, *span.of(key)).order_by(key.desc()).limit(limit)


def _of_events(span: Span) -> Span:
    """Return the span of events whose deliveries may lie in a span of deliveries."""
    high = span.high
    return Span(span.low[:SHARED_BYTES], high if len(high) <= SHARED_BYTES else high[:SHARED_BYTES] + _REST)


def _chosen(found: Sequence[Row], span: Span, *, is_end: bool) -> Chosen:
    lowest = LOWEST if is_end else max(span.low, found[-1][0][:SHARED_BYTES])
    return Chosen(_spans(found, span), lowest)


def _spans(found: Sequence[Row], span: Span) -> list[Span]:
    """Return one range per event; events that share the prefix share the range."""
    ranges = {delivery_range(row[0]): None for row in found}
    cut = [Span(low, high + b"\x00").cut(low=span.low, high=span.high) for low, high in ranges]
    return [each for each in cut if each.low < each.high]
