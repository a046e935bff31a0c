"""Lists and counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, func, select, true

from surehook.inbox.sql.finding import fits, newest
from surehook.inbox.sql.tables import conflicts, events, requests, runs
from surehook.ports.inbox import Conflict, Entry
from surehook.ports.inbox_runs import Filter, State

_ENTRY = (
    events.c.id, events.c.source, events.c.tenant, events.c.event_id, events.c.correlation_id,
    events.c.type, events.c.received_at, runs.c.state,
    runs.c.number, runs.c.attempts, runs.c.due_at, runs.c.processed_at, runs.c.finalized_at, runs.c.handler,
    runs.c.handler_version, runs.c.result_sha256, runs.c.changed, runs.c.error_code, runs.c.error,
)  # fmt: skip


def entries(connection: Connection, wanted: Filter, *, limit: int) -> list[Entry]:
    found = connection.execute(
        select(*_ENTRY)
        .select_from(events.join(runs, runs.c.event == events.c.id))
        .where(newest(), *fits(wanted))
        .order_by(events.c.received_at.desc(), events.c.id.desc())
        .limit(limit)
    )
    return [Entry(**_read(Entry.__struct_fields__, row)) for row in found]


def conflicting(connection: Connection, *, limit: int, before: bytes | None) -> list[Conflict]:
    """In the order of their ids, which is that of their arrival and has an index. A body is measured, and not read."""
    found = connection.execute(
        select(
            conflicts.c.id, conflicts.c.event, events.c.source, events.c.tenant, events.c.event_id,
            conflicts.c.received_at, conflicts.c.body_sha256, func.length(requests.c.body),
        )
        .where(true() if before is None else conflicts.c.id < before)
        .select_from(
            conflicts.join(events, events.c.id == conflicts.c.event).outerjoin(
                requests, requests.c.id == conflicts.c.request
            )
        )
        .order_by(conflicts.c.id.desc())
        .limit(limit)
    )  # fmt: skip
    return [Conflict(**_read(Conflict.__struct_fields__, row)) for row in found]


def _read(names: Sequence[str], row: Iterable[Any]) -> dict[str, Any]:
    values = dict(zip(names, row, strict=True))
    for name in ("id", "event", "body_sha256", "result_sha256"):
        if values.get(name) is not None:
            values[name] = bytes(values[name])
    if "changed" in values:
        values["changed"] = bool(values["changed"])
    return values


def counts(connection: Connection) -> dict[tuple[str, State], int]:
    found = connection.execute(
        select(events.c.source, runs.c.state, func.count())
        .select_from(runs.join(events, events.c.id == runs.c.event))
        .group_by(events.c.source, runs.c.state)
    )
    return {(source, state): int(count) for source, state, count in found}
