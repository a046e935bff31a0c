"""Deliveries as people see them: unfinished rows and last lines of finished ones, merged by id.

Each of the sources is read down to an id (where its rows end, the page is full, or enough rows were
looked at). Above the highest of these, the merge knows everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, FromClause, Table, exists, or_, select

from surehook.core.ids import delivery_range
from surehook.core.model import END_STATES
from surehook.ledgers import history, schema
from surehook.ledgers.common.paging import Source, Span, instant_floor, look_down, merged
from surehook.ledgers.common.shelves import ONE_TABLE, Shelves
from surehook.ledgers.common.steps import Row, Steps
from surehook.ports.reading import DeliveryFilter, DeliveryView
from surehook.ports.registry import Page

_open, _dead, _replayed = schema.delivery, schema.dead_letter, schema.replayed
_OPEN_COLUMNS = (
    _open.c.id, _open.c.event, _open.c.endpoint, _open.c.tenant, _open.c.type, _open.c.holder, _open.c.parked,
    _open.c.lane, _open.c.attempt, _open.c.outcome, _open.c.unknown, _open.c.due_at, _open.c.replay_of,
)  # fmt: skip
_LINE_COLUMNS = (
    "delivery", "event", "endpoint", "tenant", "type", "end", "reason", "lane", "seq", "outcome", "unknown",
    "finished_at", "replay_of",
)  # fmt: skip


class _Lines(NamedTuple):
    """One table of histories: its last lines, each with what replaced the delivery."""

    table: Table
    columns: tuple[ColumnElement[Any], ...]
    joined: FromClause

    def are_last(self) -> ColumnElement[bool]:
        return self.table.c.end.is_not(None)


@cache
def _lines(table: Table) -> _Lines:
    columns = (*(table.c[name] for name in _LINE_COLUMNS), _replayed.c.replacement)
    return _Lines(table, columns, table.outerjoin(_replayed, _replayed.c.original == table.c.delivery))


def delivery(delivery: bytes, shelves: Shelves = ONE_TABLE) -> Steps[DeliveryView | None]:
    found = yield select(*_OPEN_COLUMNS).where(_open.c.id == delivery)
    if found:
        return _open_view(found[0])
    for table in shelves.histories:
        lines = _lines(table)
        last = (table.c.delivery == delivery) & lines.are_last()
        found = yield select(*lines.columns).select_from(lines.joined).where(last)
        if found:
            return _finished_view(found[0])
    return None


def deliveries(
    where: DeliveryFilter, *, limit: int, after: bytes | None, shelves: Shelves = ONE_TABLE
) -> Steps[Page]:
    span = _span(where, after)
    sources = []
    if where.state is None or where.state not in END_STATES:
        sources.append((yield from _open_ones(where, span, limit, shelves)))
    if where.state is None or where.state in END_STATES:
        for table in shelves.histories:
            lines = _lines(table)
            key: ColumnElement[bytes] = table.c.delivery
            walk = _walked(table, where, shelves)
            sources.append(
                (yield from _finished_ones(where, span, key, lines, lines.joined, walk, limit, shelves))
            )
    return merged(sources, limit)


def dead_letters(
    where: DeliveryFilter, *, limit: int, after: bytes | None, shelves: Shelves = ONE_TABLE
) -> Steps[Page]:
    span, key, sources = _span(where, after), _dead.c.delivery, []
    for table in shelves.histories:
        lines = _lines(table)
        joined = lines.joined.join(_dead, _dead.c.delivery == table.c.delivery)
        sources.append((yield from _finished_ones(where, span, key, lines, joined, [], limit, shelves)))
    return merged(sources, limit)


def _open_ones(where: DeliveryFilter, span: Span, limit: int, shelves: Shelves) -> Steps[Source]:
    key: ColumnElement[bytes] = _open.c.id
    lowest = yield from look_down(key, span)
    conditions = [*span.cut(low=lowest).of(key), *_shared(_open, where, shelves)]
    if where.state is not None:
        conditions.append(_state_is(where.state))
    found = yield select(*_OPEN_COLUMNS).where(*conditions).order_by(key.desc()).limit(limit + 1)
    return Source.read([_open_view(row) for row in found], lowest, limit)


def _walked(table: Table, where: DeliveryFilter, shelves: Shelves) -> list[ColumnElement[bool]]:
    """The conditions of the index that leads along what the filter asks for; none: the key does."""
    for name in ("endpoint", "tenant"):
        value = getattr(where, name)
        if name in shelves.walked and value is not None:
            return [table.c[name] == value, table.c.end.is_not(None)]
    return []


def _finished_ones(
    where: DeliveryFilter,
    span: Span,
    key: ColumnElement[bytes],
    lines: _Lines,
    joined: FromClause,
    walk: Sequence[ColumnElement[bool]],
    limit: int,
    shelves: Shelves,
) -> Steps[Source]:
    """Last lines of `joined`, walked along `key`."""
    lowest = yield from look_down(key, span, walk)
    conditions = [*span.cut(low=lowest).of(key), lines.are_last(), *_shared(lines.table, where, shelves)]
    if where.state is not None:
        conditions.append(lines.table.c.end == where.state)
    listing = select(*lines.columns).select_from(joined).where(*conditions)
    found = yield listing.order_by(key.desc()).limit(limit + 1)
    return Source.read([_finished_view(row) for row in found], lowest, limit)


def _span(where: DeliveryFilter, after: bytes | None) -> Span:
    """What the filter and the cursor say about ids. A delivery's instant is the one its id was made for."""
    span = Span().cut(high=after)
    if where.since is not None:
        span = span.cut(low=instant_floor(where.since))
    if where.until is not None:
        span = span.cut(high=instant_floor(where.until))
    if where.event is not None:
        first, last = delivery_range(where.event)
        span = span.cut(low=first, high=last + b"\x00")
    return span


def _shared(table: Table, where: DeliveryFilter, shelves: Shelves) -> list[ColumnElement[bool]]:
    """Conditions on what all sources carry."""
    conditions: list[ColumnElement[bool]] = []
    if where.tenant is not None:
        conditions.append(table.c.tenant == where.tenant)
    if where.endpoint is not None:
        conditions.append(table.c.endpoint == where.endpoint)
    if where.type is not None:
        conditions.append(table.c.type == where.type)
    if where.outcome is not None:
        conditions.append(table.c.outcome == where.outcome)
    if where.event is not None:
        conditions.append(table.c.event == where.event)
    if where.subject is not None:
        about = (
            exists().where(event.c.id == table.c.event, event.c.subject == where.subject)
            for event in shelves.events
        )
        conditions.append(or_(*about))
    return conditions


def _state_is(state: str) -> ColumnElement[bool]:
    """The condition on an unfinished row of what `_open_view` calls its state."""
    unheld = _open.c.holder.is_(None)
    if state == "sending":
        return ~unheld
    if state == "parked":
        return unheld & _open.c.parked.is_not(None)
    tries = _open.c.attempt == 1 if state == "scheduled" else _open.c.attempt > 1
    return unheld & _open.c.parked.is_(None) & tries


def _open_view(row: Row) -> DeliveryView:
    id, event, endpoint, tenant, type, holder, parked, lane, attempt, outcome, unknown, due_at, replay_of = (
        row
    )
    if holder is not None:
        state = "sending"
    elif parked is not None:
        state = "parked"
    else:
        state = "retrying" if attempt > 1 else "scheduled"
    return DeliveryView(
        id=id, event=event, endpoint=endpoint, tenant=tenant, type=type, state=state, reason=parked, lane=lane,
        attempts=attempt - 1, outcome=outcome, unknown=unknown != 0, due_at=due_at, finished_at=None,
        replay_of=replay_of, replayed_by=None,
    )  # fmt: skip


def _finished_view(row: Row) -> DeliveryView:
    (
        id, event, endpoint, tenant, type, end, reason, lane, seq, outcome, unknown, finished_at, replay_of,
        replayed_by,
    ) = row  # fmt: skip
    return DeliveryView(
        id=id, event=event, endpoint=endpoint, tenant=tenant, type=type, state=end, reason=reason, lane=lane,
        attempts=history.made(seq), outcome=outcome, unknown=unknown != 0, due_at=None, finished_at=finished_at,
        replay_of=replay_of, replayed_by=replayed_by,
    )  # fmt: skip
