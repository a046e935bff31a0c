"""Runs that wait for this code to be changed: for a handler, a source, a schema version."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, literal_column, or_, select, update

from surehook.inbox.sql.tables import events, runs, stopped
from surehook.ports.inbox import UNHANDLED

_PARKED = runs.c.state == literal_column("'parked'")


def unhandled(connection: Connection, *, after: bytes, limit: int) -> list[tuple[bytes, str, str | None]]:
    """The next of those that nobody here could handle, by id."""
    found = connection.execute(
        select(runs.c.id, events.c.source, events.c.type)
        .select_from(runs.join(events, events.c.id == runs.c.event))
        .where(stopped(), _PARKED, runs.c.error_code.in_(UNHANDLED), runs.c.id > after)
        .order_by(runs.c.id)
        .limit(limit)
    )
    return [(bytes(id_), source, type_) for id_, source, type_ in found]


def take_up(connection: Connection, ids: Sequence[bytes], *, now: int) -> int:
    """Let these be processed, as far as nobody else was faster; how many."""
    done = connection.execute(
        update(runs).where(runs.c.id.in_(ids), _PARKED).values(state="accepted", due_at=now, error_code=None)
    )
    return max(done.rowcount, 0)


def unpark(connection: Connection, source: str, versions: Sequence[str], *, now: int) -> int:
    """Let those be processed that wait for one of these schema versions; how many."""
    known = select(events.c.id).where(events.c.source == source, events.c.schema_version.in_(versions))
    done = connection.execute(
        update(runs)
        .where(
            _PARKED,
            or_(runs.c.error_code.is_(None), runs.c.error_code.not_in(UNHANDLED)),
            runs.c.event.in_(known),
        )
        .values(state="accepted", due_at=now)
    )
    return max(done.rowcount, 0)
