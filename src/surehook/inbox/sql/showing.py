"""Lists, counts and retention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, delete, exists, func, select, true

from surehook.core import ids
from surehook.inbox.sql.finding import fits, newest
from surehook.inbox.sql.settling import is_open
from surehook.inbox.sql.tables import TRIES, conflicts, events, receipts, requests, runs, tries
from surehook.ports.inbox import Conflict, Entry, Filter, Pruned, State

_later = runs.alias()
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


def _read(names: Sequence[str], row: Any) -> dict[str, Any]:
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


def prune(connection: Connection, *, bodies_before: int, events_before: int, limit: int) -> Pruned:
    """Never what still has something to come: the body of an open run stays however old it is.

    What another one removes just now is passed over, not waited for.
    """
    unfinished = select(runs.c.event).where(is_open())
    needed = select(events.c.request).where(events.c.id.in_(unfinished))
    bodies = [
        bytes(id_)
        for (id_,) in connection.execute(
            select(requests.c.id)
            .where(requests.c.received_at < bodies_before, requests.c.id.not_in(needed))
            .order_by(requests.c.received_at)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
    ]
    if bodies:
        connection.execute(delete(requests).where(requests.c.id.in_(bodies)))
    old = [
        bytes(id_)
        for (id_,) in connection.execute(
            select(events.c.id)
            .where(events.c.received_at < events_before, events.c.id.not_in(unfinished), ~_waits_for_a_word())
            .order_by(events.c.received_at)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
    ]
    if old:
        # A replay may have committed between the look and the lock.
        again = select(runs.c.event).where(runs.c.event.in_(old), is_open()).with_for_update(read=True)
        begun = {bytes(event) for (event,) in connection.execute(again)}
        old = [event for event in old if event not in begun]
    if old:
        connection.execute(delete(conflicts).where(conflicts.c.event.in_(old)))
        connection.execute(delete(runs).where(runs.c.event.in_(old)))
        connection.execute(delete(receipts).where(receipts.c.event.in_(old)))
        connection.execute(delete(tries).where(tries.c.event.in_(old)))
        connection.execute(delete(events).where(events.c.id.in_(old)))
    _sweep(connection, events_before, limit)
    return Pruned(len(bodies), len(old))


def _waits_for_a_word() -> Any:
    """A condition: somebody may still `finalize` or `reject` an event, by its newest run. Looked for from the event, which has an
    index: all that was ever processed has none."""
    waits = exists().where(runs.c.event == events.c.id, runs.c.state == "processed")
    later = exists().where(_later.c.event == runs.c.event, _later.c.number > runs.c.number)
    return waits.where(~later)


def _sweep(connection: Connection, events_before: int, limit: int) -> None:
    """Remove tries whose event is gone: while a deployment lasts, a version that knows no tries removes events without them.

    Only where an event could be past its retention, by the time in its id, and so by the tries' own keys. What still has
    something to come is passed over on the way, up to `limit` of the most tries that an event has.
    """
    some = (
        select(tries.c.event)
        .where(tries.c.event < ids.floor(events_before))
        .order_by(tries.c.event)
        .limit(limit * TRIES)
        .subquery()
    )
    gone = select(some.c.event).distinct().where(~exists().where(events.c.id == some.c.event)).limit(limit)
    if orphans := [bytes(event) for (event,) in connection.execute(gone)]:
        connection.execute(delete(tries).where(tries.c.event.in_(orphans)))
