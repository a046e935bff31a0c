"""Runs that were put off, and are processed before their time."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, select, update

from surehook.inbox.sql.keyed import Keyed
from surehook.inbox.sql.tables import EVENT_KEY, events, runs

_PUT_OFF = Keyed(
    EVENT_KEY,
    lambda given: (
        select(runs.c.id)
        .select_from(runs.join(events, events.c.id == runs.c.event))
        .where(
            given,
            runs.c.state == "accepted",
            runs.c.error_code.in_(bindparam("codes", expanding=True)),
            runs.c.lease.is_(None),
            runs.c.due_at > bindparam("now"),
        )
        .with_for_update(skip_locked=True, of=runs)
    ),
)


def hasten(
    connection: Connection, tenant: str, names: Sequence[tuple[str, str]], *, codes: Sequence[str], now: int
) -> None:
    keys = [(source, tenant, event_id) for source, event_id in names]
    found = [id_ for (id_,) in _PUT_OFF.rows(connection, keys, codes=list(codes), now=now)]
    if found:
        connection.execute(update(runs).where(runs.c.id.in_(found)).values(due_at=now))
