"""Deliveries as people see them: open ones and the last history rows of finished ones, merged by id.

Each of the two sources is read down to an id, where its rows end, the page is full, or enough rows were looked at. Above the
higher of the two ids the merge is complete. A *line* here is a row of the history.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, FromClause, Table, literal_column, select

from surehook.core import receipt_state
from surehook.core.ids import delivery_range
from surehook.core.model import END_STATES
from surehook.ledgers import history, schema
from surehook.ledgers.blocks import LINES
from surehook.ledgers.common import blocks, through_events
from surehook.ledgers.common.blocks import Values
from surehook.ledgers.common.conditions import IS_LAST, asks_beside, is_plain, of_lines, of_open, outcome
from surehook.ledgers.common.indexes import LOOKS_MAX, LOWEST, NO_INDEXES, ListIndexes
from surehook.ledgers.common.paging import (
    OPEN_LOOKS_MAX,
    PageSource,
    Span,
    above_and_below,
    instant_floor,
    look_down,
    merged,
)
from surehook.ledgers.common.steps import Row, Steps
from surehook.ports.reading import DeliveryFilter, DeliveryView, Dismissal
from surehook.ports.registry import Page

_open, _line, _dead, _replayed = schema.delivery, schema.attempt, schema.dead_letter, schema.replayed
_receipt, _dismissed, _event = schema.receipt, schema.dismissed, schema.event
_OPEN_COLUMNS = (
    _open.c.id, _open.c.event, _open.c.endpoint, _open.c.tenant, _open.c.type, _open.c.holder, _open.c.parked,
    _open.c.lane, _open.c.attempt, _open.c.outcome, _open.c.unknown, _open.c.due_at, _open.c.replay_of,
    _receipt.c.said, _event.c.subject, _event.c.correlation_id,
)  # fmt: skip
_LINE_COLUMNS = (
    _line.c.delivery, _line.c.event, _line.c.endpoint, _line.c.tenant, _line.c.type, _line.c.end, _line.c.reason,
    _line.c.lane, _line.c.seq, _line.c.outcome, _line.c.unknown, _line.c.finished_at, _line.c.replay_of,
    _replayed.c.replacement, _dismissed.c.note, _dismissed.c.at, _receipt.c.said,
    _event.c.subject, _event.c.correlation_id, _dead.c.request_headers,
)  # fmt: skip

# Events of a subject or a correlation that are few.
FEW_EVENTS = 200


def _with_event(table: Table, lines: FromClause) -> FromClause:
    """Join the event, and the receiver's state of it."""
    is_its = (_receipt.c.event == table.c.event) & (_receipt.c.endpoint == table.c.endpoint)
    return lines.outerjoin(_receipt, is_its).outerjoin(_event, _event.c.id == table.c.event)


def _with_moves(lines: FromClause) -> FromClause:
    """Join what people did afterwards: replays and dismissals."""
    was_replayed = _replayed.c.original == _line.c.delivery
    was_dismissed = _dismissed.c.delivery == _line.c.delivery
    return lines.outerjoin(_replayed, was_replayed).outerjoin(_dismissed, was_dismissed)


_OPEN = _with_event(_open, _open)
_IS_DEAD = _dead.c.delivery == _line.c.delivery
_LINES = _with_event(_line, _with_moves(_line.outerjoin(_dead, _IS_DEAD)))
# Dead letters come first: after outer joins SQLite would walk the lines to find them.
_DEAD_LINES = _with_event(_line, _with_moves(_dead.join(_line, _IS_DEAD)))
_LINES_OF_DEAD = _with_event(_line, _with_moves(_line.join(_dead, _IS_DEAD)))
# Spelled as in the condition of the partial index.
_IS_NO_DELIVERY = _line.c.end != literal_column("'delivered'")


def delivery(delivery: bytes) -> Steps[DeliveryView | None]:
    found = yield select(*_OPEN_COLUMNS).select_from(_OPEN).where(_open.c.id == delivery)
    if found:
        return _open_view(found[0])
    last = (_line.c.delivery == delivery) & IS_LAST
    found = yield select(*_LINE_COLUMNS).select_from(_LINES).where(last)
    return _finished_view(found[0]) if found else None


class Walk(NamedTuple):
    """The conditions of an index to walk along, and the id below which it has every row."""

    along: Sequence[ColumnElement[bool]]
    below: bytes


def deliveries(
    where: DeliveryFilter, *, limit: int, after: bytes | None, indexes: ListIndexes = NO_INDEXES
) -> Steps[Page]:
    span = _span(where, after)
    chosen = yield from _through_events(where, span, limit, indexes)
    sources = []
    if where.state is None or where.state not in END_STATES:
        if chosen is None:
            opened = yield from _open_ones(where, span, limit)
        else:
            listing = select(*_OPEN_COLUMNS).select_from(_OPEN).where(*of_open(where))
            opened = yield from through_events.read(
                chosen, span, listing, _open.c.id, _open_view, limit=limit
            )
        sources.append(opened)
        # Finished ones below it belong to another page.
        span = span.cut(low=opened.lowest)
    if where.state is None or where.state in END_STATES:
        if chosen is None:
            sources.append((yield from _finished(where, span, limit, indexes)))
        else:
            sources.append((yield from _in_events(where, chosen, span, _LINES, limit)))
    return merged(sources, limit)


def dead_letters(
    where: DeliveryFilter, *, limit: int, after: bytes | None, indexes: ListIndexes = NO_INDEXES
) -> Steps[Page]:
    span = _span(where, after)
    chosen = yield from _through_events(where, span, limit, indexes, dead=True)
    values = _values(where)
    if chosen is not None:
        source = yield from _in_events(where, chosen, span, _LINES_OF_DEAD, limit)
    elif indexes.blocks and values:
        source = yield from _in_blocks(where, {**values, "end": "dead"}, span, _LINES_OF_DEAD, limit)
    else:
        walk = _walk_of_dead(where, indexes)
        source = yield from _led(where, span, walk, (_dead.c.delivery, _DEAD_LINES), _LINES_OF_DEAD, limit)
    return merged([source], limit)


def _through_events(
    where: DeliveryFilter, span: Span, limit: int, indexes: ListIndexes, *, dead: bool = False
) -> Steps[through_events.Chosen | None]:
    """Choose deliveries through the events of a correlation, a subject or a receipt; None: walk deliveries.

    1. A filter for one of them alone is read through its events.
    2. With other filters, only if a correlation or subject has few events: of many, a page would look at some in vain.
    3. A receipt with other filters is not read through events.
    """
    if where.event is not None:
        return None
    is_alone = not dead and is_plain(where)
    if where.correlation_id is not None:
        is_alone = is_alone and (where.tenant, where.subject, where.receipt, where.code) == (None,) * 4
        most = limit + 1 if is_alone else FEW_EVENTS + 1
        of_all = yield from through_events.by_correlation(where.correlation_id, span, limit=most)
        return of_all if is_alone or len(of_all.spans) <= FEW_EVENTS else None
    if where.subject is not None:
        its: Any = {
            "tenant": where.tenant, "in_one_file": indexes.blocks, "indexed_below": indexes.events.get("subject", LOWEST),
            "looks": indexes.event_looks,
        }  # fmt: skip
        is_alone = is_alone and (where.receipt, where.code) == (None, None)
        most = limit + 1 if is_alone else FEW_EVENTS + 1
        chosen = yield from through_events.by_subject(where.subject, span, **its, limit=most)
        return chosen if chosen is None or is_alone or len(chosen.spans) <= FEW_EVENTS else None
    return (yield from _through_receipts(where, span, limit, indexes, dead=dead))


def _through_receipts(
    where: DeliveryFilter, span: Span, limit: int, indexes: ListIndexes, *, dead: bool
) -> Steps[through_events.Chosen | None]:
    """Choose deliveries through receipts, if the filter asks for nothing else."""
    if where.tenant is not None or not is_plain(where):
        return None
    if where.code is not None and not dead and (where.receipt is None or indexes.receipts):
        return (yield from through_events.by_code(where.code, where.receipt, span, limit=limit + 1))
    if where.code is not None or where.receipt is None or not indexes.receipts:
        return None
    if dead:
        return (yield from through_events.dead_by_receipt(where.receipt, span, limit=limit + 1))
    return (yield from through_events.by_receipt(where.receipt, span, limit=limit + 1))


def _in_events(
    where: DeliveryFilter, chosen: through_events.Chosen, span: Span, lines: FromClause, limit: int
) -> Steps[PageSource]:
    """Read the last lines of chosen events."""
    listing = select(*_LINE_COLUMNS).select_from(lines).where(*of_lines(where))
    its = chosen, span, listing, _line.c.delivery, _finished_view
    return (yield from through_events.read(*its, limit=limit))


def _open_ones(where: DeliveryFilter, span: Span, limit: int) -> Steps[PageSource]:
    key: ColumnElement[bytes] = _open.c.id
    lowest = yield from look_down(key, span, rows=LOOKS_MAX if asks_beside(where) else OPEN_LOOKS_MAX)
    conditions = [*span.cut(low=lowest).of(key), *of_open(where)]
    listing = select(*_OPEN_COLUMNS).select_from(_OPEN).where(*conditions)
    found = yield listing.order_by(key.desc()).limit(limit + 1)
    return PageSource.read([_open_view(row) for row in found], lowest, limit)


def _finished(where: DeliveryFilter, span: Span, limit: int, indexes: ListIndexes) -> Steps[PageSource]:
    """Read finished deliveries along the key, and from some id on along an index for the filter."""
    walk = _walk(where, indexes)
    values = _values(where)
    if indexes.blocks and values and not (walk and len(values) == 1):
        return (yield from _in_blocks(where, values, span, _LINES, limit))
    # Looking up the receipt or event of a line costs ten times the line.
    looks = LOOKS_MAX if asks_beside(where) else indexes.line_looks
    return (yield from _led(where, span, walk, (_line.c.delivery, _LINES), _LINES, limit, looks=looks))


def _led(
    where: DeliveryFilter,
    span: Span,
    walk: Walk | None,
    key_of: tuple[ColumnElement[bytes], FromClause],
    lines: FromClause,
    limit: int,
    *,
    looks: int | None = LOOKS_MAX,
) -> Steps[PageSource]:
    """Read finished deliveries along a key, and along the index of `walk` from the id below which it is complete."""
    key, of_key = key_of
    if walk is None:
        return (yield from _finished_ones(where, span, key, of_key, [], limit))
    along = walk.along
    return (
        yield from above_and_below(
            span,
            walk.below,
            lambda part: _finished_ones(where, part, key, of_key, [], limit, looks=looks),
            lambda part: _finished_ones(where, part, _line.c.delivery, lines, along, limit),
        )
    )


def _walk(where: DeliveryFilter, indexes: ListIndexes) -> Walk | None:
    """Choose the index to walk along; None: walk the key.

    An endpoint has fewer lines than its tenant. Of the other filters, ends and outcomes other than `delivered` are the rarest.
    """
    for name in ("endpoint", "tenant"):
        value = getattr(where, name)
        if name in indexes.lines and value is not None:
            return Walk([_line.c[name] == value, IS_LAST], indexes.lines[name])
    if "end" in indexes.lines and where.state in END_STATES and where.state != "delivered":
        return Walk([_line.c.end == where.state, IS_LAST, _IS_NO_DELIVERY], indexes.lines["end"])
    if "outcome" in indexes.lines and outcome(where) not in (None, "delivered"):
        its = [_line.c.outcome == outcome(where), IS_LAST, _line.c.outcome != literal_column("'delivered'")]
        return Walk(its, indexes.lines["outcome"])
    if "type" in indexes.lines and where.type is not None:
        return Walk([_line.c.type == where.type, IS_LAST], indexes.lines["type"])
    return None


def _walk_of_dead(where: DeliveryFilter, indexes: ListIndexes) -> Walk | None:
    """Choose the index of dead deliveries, dealt with or not; None: walk the dead letters."""
    for name in ("endpoint", "tenant", "type"):
        value = getattr(where, name)
        if (below := indexes.lines.get(f"dead {name}")) is not None and value is not None:
            return Walk([_line.c[name] == value, _line.c.end == literal_column("'dead'")], below)
    if "outcome" in indexes.lines and outcome(where) not in (None, "delivered"):
        return _walk(where, indexes)
    return None


def _values(where: DeliveryFilter) -> Values:
    """Return the values of a filter that blocks have."""
    asked = {
        "tenant": where.tenant, "endpoint": where.endpoint, "type": where.type, "outcome": outcome(where),
        "end": where.state if where.state in END_STATES else None,
    }  # fmt: skip
    return {field: value for field, value in asked.items() if value is not None}


def _in_blocks(
    where: DeliveryFilter, values: Values, span: Span, lines: FromClause, limit: int
) -> Steps[PageSource]:
    """Read the last lines in blocks that may have some."""
    listing = select(*_LINE_COLUMNS).select_from(lines).where(*of_lines(where))
    return (
        yield from blocks.read(LINES, values, span, listing, _line.c.delivery, _finished_view, limit=limit)
    )


def _finished_ones(
    where: DeliveryFilter,
    span: Span,
    key: ColumnElement[bytes],
    lines: FromClause,
    walk: Sequence[ColumnElement[bool]],
    limit: int,
    *,
    looks: int | None = LOOKS_MAX,
) -> Steps[PageSource]:
    """Read last lines among `lines`, walked along `key`."""
    lowest = yield from look_down(key, span, walk, rows=looks)
    conditions = [*span.cut(low=lowest).of(key), *walk, *of_lines(where)]
    listing = select(*_LINE_COLUMNS).select_from(lines).where(*conditions)
    found = yield listing.order_by(key.desc()).limit(limit + 1)
    return PageSource.read([_finished_view(row) for row in found], lowest, limit)


def _span(where: DeliveryFilter, after: bytes | None) -> Span:
    """Return the span of ids that the filter and the cursor allow. A delivery's instant is that of its id."""
    span = Span().cut(high=after)
    if where.since is not None:
        span = span.cut(low=instant_floor(where.since))
    if where.until is not None:
        span = span.cut(high=instant_floor(where.until))
    if where.event is not None:
        first, last = delivery_range(where.event)
        span = span.cut(low=first, high=last + b"\x00")
    return span


def _open_view(row: Row) -> DeliveryView:
    (
        id, event, endpoint, tenant, type, holder, parked, lane, attempt, outcome, unknown, due_at, replay_of, said,
        subject, correlation_id,
    ) = row  # fmt: skip
    if holder is not None:
        state = "sending"
    elif parked is not None:
        state = "parked"
    else:
        state = "retrying" if attempt > 1 else "scheduled"
    return DeliveryView(
        id=id, event=event, endpoint=endpoint, tenant=tenant, type=type, state=state, reason=parked, lane=lane,
        attempts=attempt - 1, outcome=outcome, unknown=unknown != 0, due_at=due_at, finished_at=None,
        replay_of=replay_of, replayed_by=None, receipt=receipt_state.decode(said), subject=subject,
        correlation_id=correlation_id,
    )  # fmt: skip


def _finished_view(row: Row) -> DeliveryView:
    (
        id, event, endpoint, tenant, type, end, reason, lane, seq, outcome, unknown, finished_at, replay_of,
        replayed_by, note, dismissed_at, said, subject, correlation_id, request_headers,
    ) = row  # fmt: skip
    return DeliveryView(
        id=id, event=event, endpoint=endpoint, tenant=tenant, type=type, state=end, reason=reason, lane=lane,
        attempts=history.made(seq), outcome=outcome, unknown=unknown != 0, due_at=None, finished_at=finished_at,
        replay_of=replay_of, replayed_by=replayed_by, receipt=receipt_state.decode(said),
        subject=subject, correlation_id=correlation_id, request_headers=request_headers,
        dismissal=None if dismissed_at is None else Dismissal(note, dismissed_at),
    )  # fmt: skip
