"""Runs that were put off, and are processed before their time."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select, tuple_, update

from surehook.inbox.sql.tables import events, runs


def hasten(
    connection: Connection, tenant: str, names: Sequence[tuple[str, str]], *, codes: Sequence[str], now: int
) -> None:
    keys = [(source, tenant, event_id) for source, event_id in names]
    wanted = (
        select(runs.c.id)
        .select_from(runs.join(events, events.c.id == runs.c.event))
        .where(
            tuple_(events.c.source, events.c.tenant, events.c.event_id).in_(keys),
            runs.c.state == "accepted",
            runs.c.error_code.in_(codes),
            runs.c.lease.is_(None),
            runs.c.due_at > now,
        )
        .with_for_update(skip_locked=True, of=runs)
    )
    found = [id_ for (id_,) in connection.execute(wanted)]
    if found:
        connection.execute(update(runs).where(runs.c.id.in_(found)).values(due_at=now))
