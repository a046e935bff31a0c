"""Events and notices, newest first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Select, select

from surehook.core import limits
from surehook.core.instants import SECOND_MS
from surehook.core.model import Event, Notice
from surehook.ledgers import schema
from surehook.ledgers.blocks import EVENTS
from surehook.ledgers.common import blocks
from surehook.ledgers.common.indexes import AHEAD_MS, HIGHEST, LOOKS_MAX, LOWEST, NO_INDEXES, ListIndexes
from surehook.ledgers.common.paging import (
    PageSource,
    Span,
    above_and_below,
    instant_floor,
    look_down,
    merged,
)
from surehook.ledgers.common.steps import Row, Steps
from surehook.ledgers.common.subjects import of_every_tenant
from surehook.ports.reading import EventFilter, NoticeFilter
from surehook.ports.registry import Page

_event, _notice, _key = schema.event, schema.notice, schema.idempotency
_EVENTS = select(
    _event.c.id, _event.c.tenant, _event.c.type, _event.c.schema_version, _event.c.subject, _event.c.sequence,
    _event.c.workflow_version, _event.c.correlation_id, _event.c.causation_id, _event.c.source,
    _event.c.occurred_at, _event.c.accepted_at, _event.c.body, _event.c.digest, _event.c.fan_out,
    _event.c.idempotency_key,
)  # fmt: skip
_BODY = 12
KEY_LIFE_MS = limits.IDEMPOTENCY_KEPT_S * SECOND_MS


def event(event: bytes) -> Steps[Event | None]:
    found = yield _EVENTS.where(_event.c.id == event)
    return _made_event(found[0]) if found else None


def events(
    where: EventFilter,
    *,
    limit: int,
    after: bytes | None,
    indexes: ListIndexes = NO_INDEXES,
) -> Steps[Page]:
    span = Span().cut(high=after)
    rest: list[ColumnElement[bool]] = []
    if where.since is not None:
        lag_ms = (yield select(schema.configuration.c.lag_ms))[0][0]
        span = span.cut(low=instant_floor(where.since - lag_ms))
        rest.append(_event.c.accepted_at >= where.since)
    if where.until is not None:
        span = span.cut(high=instant_floor(where.until + AHEAD_MS))
        rest.append(_event.c.accepted_at < where.until)
    listing = _EVENTS.where(*rest)
    asked = _asked(where)
    its = {name: _event.c[name] == value for name, value in asked.items()}
    sources: list[PageSource] = []
    if where.idempotency_key is not None:
        # The last event of the key, while the key is stored: on PostgreSQL the event's day may have no index yet.
        is_its = _key.c.tenant == where.tenant, _key.c.key == where.idempotency_key
        for newest, expires_at in (yield select(_key.c.event, _key.c.expires_at).where(*is_its)):
            others = [condition for name, condition in its.items() if name != "idempotency_key"]
            found = yield listing.where(_event.c.id == newest, *span.of(_event.c.id), *others)
            sources.append(PageSource.read([_made_event(row) for row in found], None, limit))
            # It took the key one key life before the expiry, and the event before it another one earlier. An id may be ahead.
            span = span.cut(high=instant_floor(expires_at - 2 * KEY_LIFE_MS + AHEAD_MS))
    led, upto = _led(asked, indexes.events)
    if indexes.blocks and set(asked) == {"subject"}:
        of_all = yield from of_every_tenant(asked["subject"], listing, span, limit=limit + 1)
        if of_all is not None:
            return merged([PageSource.read([_made_event(row) for row in of_all], None, limit)], limit)
    if indexes.blocks and asked and not led and "subject" not in asked:
        listing = listing.where(*its.values())
        source = yield from blocks.read(EVENTS, asked, span, listing, _event.c.id, _made_event, limit=limit)
        return merged([source], limit)

    def walk(part: Span, along: Collection[str]) -> Steps[PageSource]:
        conditions = [condition for name, condition in its.items() if name not in along]
        its_walk = [its[name] for name in along]
        rows = indexes.event_looks if led and not along else LOOKS_MAX
        return _walk(listing.where(*conditions), _event.c.id, part, its_walk, _made_event, limit, rows=rows)

    source = yield from above_and_below(span, upto, lambda part: walk(part, ()), lambda part: walk(part, led))
    return merged([*sources, source], limit)


def _asked(where: EventFilter) -> dict[str, str]:
    """Return the values that a filter wants, by column."""
    names = "tenant", "type", "subject", "correlation_id", "idempotency_key"
    return {name: value for name in names if (value := getattr(where, name)) is not None}


def _led(asked: Mapping[str, str], below: Mapping[str, bytes]) -> tuple[tuple[str, ...], bytes]:
    """Choose the index for a filter: return its columns, and the id below which it has every row.

    The indexes by subject and tenant and by correlation are maintained with every event; on SQLite so is that by key.
    """
    if "idempotency_key" in asked:
        return ("idempotency_key",), below.get("idempotency_key", HIGHEST)
    if "correlation_id" in asked:
        return ("correlation_id",), HIGHEST
    if "subject" in asked and "tenant" in asked:
        return ("tenant", "subject"), HIGHEST
    for name in ("subject", "tenant", "type"):
        if name in asked and name in below:
            return (name,), below[name]
    return (), LOWEST


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
    source = yield from _walk(select(_notice).where(*rest), _notice.c.id, span, [], _made_notice, limit)
    return merged([source], limit)


def _walk(
    listing: Select[Any],
    key: ColumnElement[bytes],
    span: Span,
    along: list[ColumnElement[bool]],
    made: Callable[[Row], object],
    limit: int,
    *,
    rows: int | None = LOOKS_MAX,
) -> Steps[PageSource]:
    """Read the rows of a listing along an index, in the order of their ids."""
    lowest = yield from look_down(key, span, along, rows=rows)
    conditions = [*span.cut(low=lowest).of(key), *along]
    found = yield listing.where(*conditions).order_by(key.desc()).limit(limit + 1)
    return PageSource.read([made(row) for row in found], lowest, limit)


def _made_notice(row: Row) -> Notice:
    return Notice(*row)


def _made_event(row: Row) -> Event:
    values = list(row)
    if values[_BODY] is None:
        values[_BODY] = b""
    return Event(*values)
