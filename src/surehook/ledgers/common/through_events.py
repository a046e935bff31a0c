"""Deliveries found through their events: what a receiver said, and a subject, are matters of the event.

An index leads to the events, newest first, and the deliveries of an event are one short range of ids. Walking deliveries and
asking each for its event or its receipt would look at all of them, where few are meant.
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
from surehook.ledgers.common.paging import Source, Span, look_down
from surehook.ledgers.common.steps import Again, Row, Steps
from surehook.ledgers.common.subjects import of_every_tenant

_REST = b"\xff" * 7  # behind the beginning that an event shares with its deliveries: above all that share it
_LOW, _HIGH = bindparam("low", LOWEST, schema.Id), bindparam("high", LOWEST, schema.Id)
_event, _receipt, _dead = schema.event, schema.receipt, schema.dead_letter
FEW_RECEIPTS = 10_000  # of which all are looked at: some 30 ms
# Of an event that are looked at before its dead letters are; an event may have one for each endpoint.
RECEIPTS_MAX = 64


class Chosen(NamedTuple):
    """Ranges of deliveries, newest first; whatever fits at or above `lowest` is in one of them."""

    spans: list[Span]
    lowest: bytes


def by_receipt(stage: Stage, span: Span, *, limit: int) -> Steps[Chosen]:
    """Of the newest so many events of which their receivers have told this and no more."""
    key: ColumnElement[bytes] = _receipt.c.event
    its = _receipt.c.stage == rank(stage)
    is_told = _receipt.c.stage > 0  # as the partial index says it
    found = yield _newest_of(key, _of_events(span), [its, is_told], limit)
    return _chosen(found, span, is_end=len(found) < limit)


def by_code(code: str, stage: Stage | None, span: Span, *, limit: int) -> Steps[Chosen]:
    """Of the newest so many events of which their receivers have told something with this code. No index is by code: of
    receipts, those of a stage where one is named, a page looks at so many."""
    key: ColumnElement[bytes] = _receipt.c.event
    its = [] if stage is None else [_receipt.c.stage == rank(stage), _receipt.c.stage > 0]
    events = _of_events(span)
    lowest = yield from look_down(key, events, its)
    found = yield _newest_of(key, events.cut(low=lowest), [*its, told_code(code)], limit)
    if lowest is not None and len(found) < limit:
        # Of an event that lies across the bound some receipts may be below it: deliveries from the event above on.
        return Chosen(_spans(found, span), max(lowest[:SHARED_BYTES] + _REST, span.low))
    return _chosen(found, span, is_end=len(found) < limit)


def by_correlation(correlation_id: str, span: Span, *, limit: int) -> Steps[Chosen]:
    """Of the newest so many events of a correlation, which an index that is kept up with every event leads to."""
    key: ColumnElement[bytes] = _event.c.id
    found = yield _newest_of(key, _of_events(span), [_event.c.correlation_id == correlation_id], limit)
    return _chosen(found, span, is_end=len(found) < limit)


def dead_by_receipt(stage: Stage, span: Span, *, limit: int) -> Steps[Chosen]:
    """The newest dead letters of whose events a receiver has told this and no more: by the receipts where those are few, else
    by the dead letters. Only what is found so is read: a dead letter's line lies anywhere among all lines."""
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
    """Whether a receiver of its event has told this; of many receivers that is left open."""
    listing = select(_receipt.c.stage).where(*_of_one_event(_receipt.c.event, delivery)).correlate(_dead)
    first = listing.limit(RECEIPTS_MAX).subquery()
    has = select(1).select_from(first).where(first.c.stage == rank(stage)).limit(1).scalar_subquery()
    more = listing.limit(1).offset(RECEIPTS_MAX).scalar_subquery()
    return or_(has.is_not(None), more.is_not(None))


def _of_one_event(key: ColumnElement[bytes], other: ColumnElement[bytes]) -> list[ColumnElement[bool]]:
    """Ids of an event or a delivery that begin as the other one does. Bytes put together are text to SQLite."""
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
    """Of the newest so many events of a subject; None: no index leads to them. An index by subject alone there is on days
    that are over, below an id; of the events above it so many are looked at (None: all)."""
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
    made: Callable[[Row], Any],
    *,
    limit: int,
) -> Steps[Source]:
    """What a listing of deliveries has in the ranges, as far as they lie in a span."""
    of_one = listing.where(key >= _LOW, key < _HIGH).order_by(key.desc()).limit(limit + 1)
    found: list[Any] = []
    for one in chosen.spans:
        low, high = one.cut(low=span.low, high=span.high)
        if low < high:
            found += [made(row) for row in (yield Again(of_one, {"low": low, "high": high}))]
        if len(found) > limit:
            break
    return Source.read(found, chosen.lowest, limit)


def _newest_of(
    key: ColumnElement[bytes], span: Span, its: Sequence[ColumnElement[bool]], limit: int
) -> Select[Any]:
    return select(key).where(*its, *span.of(key)).order_by(key.desc()).limit(limit)


def _of_events(span: Span) -> Span:
    """The events whose deliveries may lie in a span of deliveries."""
    high = span.high
    return Span(span.low[:SHARED_BYTES], high if len(high) <= SHARED_BYTES else high[:SHARED_BYTES] + _REST)


def _chosen(found: Sequence[Row], span: Span, *, is_end: bool) -> Chosen:
    lowest = LOWEST if is_end else max(span.low, found[-1][0][:SHARED_BYTES])
    return Chosen(_spans(found, span), lowest)


def _spans(found: Sequence[Row], span: Span) -> list[Span]:
    """One range for each event; two that share the beginning of their ids share the range."""
    ranges = {delivery_range(row[0]): None for row in found}
    cut = [Span(low, high + b"\x00").cut(low=span.low, high=span.high) for low, high in ranges]
    return [each for each in cut if each.low < each.high]
