"""Events and notices, newest first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, Select, select

from surehook.core.model import Event, Notice
from surehook.ledgers import schema
from surehook.ledgers.blocks import EVENTS
from surehook.ledgers.common import blocks
from surehook.ledgers.common.blocks import Values
from surehook.ledgers.common.paging import AHEAD_MS, Source, Span, instant_floor, look_down, merged
from surehook.ledgers.common.steps import Row, Steps
from surehook.ports.reading import EventFilter, NoticeFilter
from surehook.ports.registry import Page

_event, _notice = schema.event, schema.notice
_EVENTS = select(
    _event.c.id, _event.c.tenant, _event.c.type, _event.c.schema_version, _event.c.subject, _event.c.sequence,
    _event.c.workflow_version, _event.c.correlation_id, _event.c.causation_id, _event.c.source,
    _event.c.occurred_at, _event.c.accepted_at, _event.c.body, _event.c.digest, _event.c.fan_out,
)  # fmt: skip
_BODY = 12


def event(event: bytes) -> Steps[Event | None]:
    found = yield _EVENTS.where(_event.c.id == event)
    return _made_event(found[0]) if found else None


def events(where: EventFilter, *, limit: int, after: bytes | None, in_blocks: bool = False) -> Steps[Page]:
    """`in_blocks`: there are blocks, for what no index leads along."""
    span = Span().cut(high=after)
    walk: list[ColumnElement[bool]] = []  # what an index walks along
    rest: list[ColumnElement[bool]] = []
    if where.subject is not None:
        walk.append(_event.c.subject == where.subject)
    if where.tenant is not None:
        (rest if where.subject is None else walk).append(_event.c.tenant == where.tenant)
    if where.correlation_id is not None:
        walk.append(_event.c.correlation_id == where.correlation_id)
    if where.type is not None:
        rest.append(_event.c.type == where.type)
    if where.since is not None:
        lag_ms = (yield select(schema.configuration.c.lag_ms))[0][0]
        span = span.cut(low=instant_floor(where.since - lag_ms))
        rest.append(_event.c.accepted_at >= where.since)
    if where.until is not None:
        span = span.cut(high=instant_floor(where.until + AHEAD_MS))
        rest.append(_event.c.accepted_at < where.until)
    values = {} if walk or not in_blocks else _values(where)
    if not values:
        return (yield from _page(_EVENTS, _event.c.id, span, walk, rest, _made_event, limit=limit))
    source = yield from blocks.read(
        EVENTS, values, span, _EVENTS.where(*rest), _event.c.id, _made_event, limit=limit
    )
    return merged([source], limit)


def _values(where: EventFilter) -> Values:
    """What blocks know of a filter."""
    asked = {"tenant": where.tenant, "type": where.type}
    return {field: value for field, value in asked.items() if value is not None}


def notices(where: NoticeFilter, *, limit: int, after: bytes | None) -> Steps[Page]:
    rest: list[ColumnElement[bool]] = []
    if where.tenant is not None:
        rest.append(_notice.c.tenant == where.tenant)
    if where.endpoint is not None:
        rest.append(_notice.c.endpoint == where.endpoint)
    if where.kind is not None:
        rest.append(_notice.c.kind == where.kind)
    if where.since is not None:
        rest.append(_notice.c.at >= where.since)
    span = Span().cut(high=after)
    return (yield from _page(select(_notice), _notice.c.id, span, [], rest, _made_notice, limit=limit))


def _page(
    listing: Select[Any],
    key: ColumnElement[bytes],
    span: Span,
    walk: list[ColumnElement[bool]],
    rest: list[ColumnElement[bool]],
    made: Callable[[Row], Any],
    *,
    limit: int,
) -> Steps[Page]:
    """The rows of the walk that fit the rest of the filter, in the order of their ids."""
    lowest = yield from look_down(key, span, walk)
    conditions = [*span.cut(low=lowest).of(key), *walk, *rest]
    found = yield listing.where(*conditions).order_by(key.desc()).limit(limit + 1)
    return merged([Source.read([made(row) for row in found], lowest, limit)], limit)


def _made_notice(row: Row) -> Notice:
    return Notice(*row)


def _made_event(row: Row) -> Event:
    values = list(row)
    if values[_BODY] is None:
        values[_BODY] = b""
    return Event(*values)
