"""Filters as conditions, one place for lists and replays."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Select, func, literal_column, select, true

from surehook.inbox.sql.tables import STOPPED, events, runs, steps, stopped, unindexed
from surehook.ports.inbox_runs import Filter

_any = runs.alias()


def newest() -> ColumnElement[bool]:
    """A condition: the run is the newest of its event, over `events` joined with `runs`."""
    return (
        runs.c.number == select(func.max(_any.c.number)).where(_any.c.event == events.c.id).scalar_subquery()
    )


def standing_still(state: str) -> Select[bytes]:
    """Events with a run in one of the states that have an index of their own. In this very text, as it has."""
    return select(runs.c.event).where(stopped(), runs.c.state == literal_column(f"'{state}'"))


def fits(wanted: Filter) -> list[ColumnElement[bool]]:
    """Conditions over `events` joined with its newest run."""
    conditions: list[ColumnElement[bool]] = [true()]
    # Without an id, the newest of a source are found by when they came.
    source = events.c.source if wanted.event_id is not None else unindexed(events.c.source)
    for column, value in (
        (events.c.id, wanted.event),
        (source, wanted.source),
        (events.c.tenant, wanted.tenant),
        (events.c.event_id, wanted.event_id),
        (events.c.correlation_id, wanted.correlation_id),
        (runs.c.state, wanted.state),
        (runs.c.error_code, wanted.error_code),
    ):
        if value is not None:
            conditions.append(column == value)
    if wanted.state in STOPPED:
        conditions.append(events.c.id.in_(standing_still(wanted.state)))
    if wanted.type is not None and wanted.type != "*":
        conditions.append(_type(wanted.type))
    if wanted.document is not None:
        decided = select(steps.c.event).where(steps.c.document == wanted.document, steps.c.event.is_not(None))
        conditions.append(events.c.id.in_(decided))
    if wanted.since is not None:
        conditions.append(events.c.received_at >= wanted.since)
    if wanted.until is not None:
        conditions.append(events.c.received_at < wanted.until)
    return conditions


def _type(pattern: str) -> ColumnElement[bool]:
    if pattern.endswith(".*"):
        return events.c.type.startswith(pattern[:-1], autoescape=True)
    return events.c.type == pattern
