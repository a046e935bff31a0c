"""Deliveries found through their events: what a receiver said, and a subject, are matters of the event.

An index leads to the events, newest first, and the deliveries of an event are one short range of ids. Walking deliveries and
asking each for its event or its receipt would look at all of them, where few are meant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, bindparam, select

from surehook.core.ids import SHARED_BYTES, delivery_range
from surehook.core.receipt import Stage, rank
from surehook.ledgers import schema
from surehook.ledgers.common.ends import LOWEST
from surehook.ledgers.common.paging import Source, Span, look_down
from surehook.ledgers.common.steps import Again, Row, Steps
from surehook.ledgers.common.subjects import of_every_tenant

_REST = b"\xff" * 7  # behind the beginning that an event shares with its deliveries: above all that share it
_LOW, _HIGH = bindparam("low", LOWEST, schema.Id), bindparam("high", LOWEST, schema.Id)
_event, _receipt = schema.event, schema.receipt


class Chosen(NamedTuple):
    """Ranges of deliveries, newest first; whatever fits at or above `lowest` is in one of them."""

    spans: list[Span]
    lowest: bytes


def by_receipt(stage: Stage, span: Span, *, limit: int) -> Steps[Chosen]:
    """Of the newest so many events of which their receivers have told this and no more."""
    key: ColumnElement[bytes] = _receipt.c.event
    its = _receipt.c.stage == rank(stage)
    is_told = _receipt.c.stage > 0  # as the partial index says it
    listing = select(key).where(its, is_told, *_of_events(span).of(key)).order_by(key.desc())
    found = yield listing.limit(limit)
    return _chosen(found, span, is_end=len(found) < limit)


def by_subject(
    subject: str, span: Span, *, tenant: str | None, in_one_file: bool, indexed_below: bytes, limit: int
) -> Steps[Chosen | None]:
    """Of the newest so many events of a subject; None: no index leads to them. An index by subject alone there is on days
    that are over, below an id."""
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
        lowest = yield from look_down(key, above)
        found = yield _newest(listing, above.cut(low=lowest), walk, limit)
        if lowest is not None and len(found) < limit:
            return Chosen(_spans(found, span), max(lowest[:SHARED_BYTES] + _REST, span.low))
    if len(found) < limit and below.low < below.high:
        found = [*found, *(yield _newest(listing, below, walk, limit - len(found)))]
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


def _newest(listing: Select[Any], span: Span, walk: Sequence[ColumnElement[bool]], limit: int) -> Select[Any]:
    key: ColumnElement[bytes] = _event.c.id
    return listing.where(*walk, *span.of(key)).order_by(key.desc()).limit(limit)


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
