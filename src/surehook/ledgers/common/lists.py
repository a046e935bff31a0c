"""Events and notices, newest first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, select

from surehook.core.model import Event, Notice
from surehook.ledgers import schema
from surehook.ledgers.common.paging import AHEAD_MS, Source, Span, instant_floor, look_down, merged
from surehook.ledgers.common.shelves import ONE_TABLE, Shelves
from surehook.ledgers.common.steps import Row, Steps
from surehook.ports.reading import EventFilter, NoticeFilter
from surehook.ports.registry import Page

_notice = schema.notice
_EVENT_COLUMNS = (
    "id", "tenant", "type", "schema_version", "subject", "sequence", "workflow_version", "correlation_id",
    "causation_id", "source", "occurred_at", "accepted_at", "body", "digest", "fan_out",
)  # fmt: skip
_BODY = 12


def event(event: bytes, shelves: Shelves = ONE_TABLE) -> Steps[Event | None]:
    bare = None
    for table in shelves.events:
        found = yield _listing(table).where(table.c.id == event)
        if found and found[0][_BODY] is not None:
            return _made_event(found[0])
        bare = found[0] if found else bare
    return None if bare is None else _made_event(bare)


def events(
    where: EventFilter, *, limit: int, after: bytes | None, shelves: Shelves = ONE_TABLE
) -> Steps[Page]:
    span = Span().cut(high=after)
    if where.since is not None:
        lag_ms = (yield select(schema.configuration.c.lag_ms))[0][0]
        span = span.cut(low=instant_floor(where.since - lag_ms))
    if where.until is not None:
        span = span.cut(high=instant_floor(where.until + AHEAD_MS))
    sources = []
    for table in shelves.events:
        walk, rest = _conditions(table, where)
        source = yield from _source(_listing(table), table.c.id, span, walk, rest, _made_event, limit=limit)
        sources.append(source)
    return merged(sources, limit)


def _listing(table: Table) -> Select[Any]:
    return select(*(table.c[name] for name in _EVENT_COLUMNS))


def _conditions(
    table: Table, where: EventFilter
) -> tuple[list[ColumnElement[bool]], list[ColumnElement[bool]]]:
    """What an index walks along, and the rest."""
    walk: list[ColumnElement[bool]] = []
    rest: list[ColumnElement[bool]] = []
    if where.subject is not None:
        walk.append(table.c.subject == where.subject)
    if where.tenant is not None:
        (rest if where.subject is None else walk).append(table.c.tenant == where.tenant)
    if where.correlation_id is not None:
        walk.append(table.c.correlation_id == where.correlation_id)
    if where.type is not None:
        rest.append(table.c.type == where.type)
    if where.since is not None:
        rest.append(table.c.accepted_at >= where.since)
    if where.until is not None:
        rest.append(table.c.accepted_at < where.until)
    return walk, rest


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
    source = yield from _source(
        select(_notice), _notice.c.id, span, [], rest, lambda row: Notice(*row), limit=limit
    )
    return merged([source], limit)


def _source(
    listing: Select[Any],
    key: ColumnElement[bytes],
    span: Span,
    walk: list[ColumnElement[bool]],
    rest: list[ColumnElement[bool]],
    made: Callable[[Row], Any],
    *,
    limit: int,
) -> Steps[Source]:
    """The rows of the walk that fit the rest of the filter, in the order of their ids."""
    lowest = yield from look_down(key, span, walk)
    conditions = [*span.cut(low=lowest).of(key), *walk, *rest]
    found = yield listing.where(*conditions).order_by(key.desc()).limit(limit + 1)
    return Source.read([made(row) for row in found], lowest, limit)


def _made_event(row: Row) -> Event:
    values = list(row)
    if values[_BODY] is None:
        values[_BODY] = b""
    return Event(*values)
