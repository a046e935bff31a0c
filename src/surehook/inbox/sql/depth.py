"""The backlog, by a look that costs the same however large it is: at most `limit` rows of each kind are counted.

Open runs are found by the index of what is due, the others by one that holds nothing else, so a healthy inbox of many million
finished runs is looked at in a few pages.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Select, Subquery, case, exists, func, literal_column, select

from surehook.inbox.sql.tables import STOPPED, events, runs, stopped
from surehook.ports.inbox_depth import Depth

_later = runs.alias()


def depth(connection: Connection, *, now: int, limit: int) -> list[Depth]:
    found: dict[str, dict[str, Any]] = {}
    for source, count, ready, oldest in connection.execute(_open(now, limit)):
        found[source] = {
            "ready": int(ready),
            "scheduled": int(count) - int(ready),
            "oldest_due_at": int(oldest) if int(oldest) <= now else None,
        }
    for state in STOPPED:
        for source, count in connection.execute(_stopped(state, limit)):
            found.setdefault(source, {})[state] = int(count)
    return [Depth(source=source, **counts) for source, counts in sorted(found.items())]


def _open(now: int, limit: int) -> Select[str, int, int, int]:
    some: Subquery = (
        select(runs.c.event, runs.c.due_at)
        .where(runs.c.due_at.is_not(None))
        .order_by(runs.c.due_at, runs.c.id)
        .limit(limit)
        .subquery()
    )
    is_due = func.sum(case((some.c.due_at <= now, 1), else_=0))
    return (
        select(events.c.source, func.count(), is_due, func.min(some.c.due_at))
        .select_from(some.join(events, events.c.id == some.c.event))
        .group_by(events.c.source)
    )


def _stopped(state: str, limit: int) -> Select[str, int]:
    """Count the newest runs of events; one that was replayed since is no longer anybody's worry."""
    some: Subquery = (
        select(runs.c.event, runs.c.number)
        .where(stopped(), runs.c.state == literal_column(f"'{state}'"))
        .order_by(runs.c.id.desc())
        .limit(limit)
        .subquery()
    )
    again = exists().where(_later.c.event == some.c.event, _later.c.number > some.c.number)
    return (
        select(events.c.source, func.count())
        .select_from(some.join(events, events.c.id == some.c.event))
        .where(~again)
        .group_by(events.c.source)
    )
