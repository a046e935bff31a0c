"""Runs that wait for this code to be changed: for a handler, a source, a schema version."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, literal_column, select, update

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


def unpark(
    connection: Connection, source: str, versions: Collection[str], *, after: bytes, limit: int, now: int
) -> tuple[int, bytes | None]:
    """Of the next of those that are parked, by id, let those be processed that wait for one of these schema versions."""
    # The page first: without statistics, PostgreSQL joins and sorts all of both tables for each.
    some = (
        select(runs.c.id, runs.c.event, runs.c.error_code)
        .where(stopped(), _PARKED, runs.c.id > after)
        .order_by(runs.c.id)
        .limit(limit)
        .subquery()
    )
    page = connection.execute(
        select(some.c.id, some.c.error_code, events.c.source, events.c.schema_version)
        .select_from(some.join(events, events.c.id == some.c.event))
        .order_by(some.c.id)
    ).all()
    wait = [
        bytes(id_)
        for id_, code, of, version in page
        if code not in UNHANDLED and of == source and version in versions
    ]
    return take_up(connection, wait, now=now), bytes(page[-1].id) if len(page) == limit else None
