"""Requests and their events on the way in: what is new is written, what is not is told apart.

Under load nearly everything is new, so a batch is first inserted as if all of it were, without looking. If one row was
there already the database says so, the transaction is given up, and the same batch comes again with a look before it
(`careful`). The unique constraint decides in both cases; looking only says what it will decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, insert, select, tuple_
from sqlalchemy.exc import IntegrityError

from surehook.inbox.sql.tables import conflicts, events, requests, runs
from surehook.ports.inbox import Clash, Event, Request, Stored

Standing = dict[tuple[str, str, str], tuple[bytes, bytes]]  # key → id and hash of the event that stands

LOOK = 200  # keys in one SELECT: three parameters each, below the 999 of old SQLite builds
CONFLICTS_PER_EVENT = (
    10  # other bodies kept for one event; a sender that never repeats itself must not fill the disk
)


def persist(connection: Connection, given: Sequence[Request], *, careful: bool) -> list[list[Stored]]:
    standing = _look(connection, given) if careful else {}
    answers: list[list[Stored]] = []
    new_events: list[tuple[Request, Event]] = []
    other: list[tuple[Request, Event, bytes]] = []
    kept: list[Request] = []
    for request in given:
        ends = []
        for event in request.events:
            found = standing.get(event.key)
            if found is None:
                standing[event.key] = (event.id, event.body_sha256)
                new_events.append((request, event))
                ends.append(Stored("new", event.id))
            elif found[1] == event.body_sha256:
                ends.append(Stored("duplicate", found[0]))
            else:
                other.append((request, event, found[0]))
                ends.append(Stored("conflict", found[0]))
        if any(end.kind == "new" for end in ends):
            kept.append(request)
        answers.append(ends)
    written = _conflicting(connection, other) if other else []
    kept_ids = {request.id for request in kept}
    kept += {request.id: request for request, _ in written if request.id not in kept_ids}.values()
    _write(connection, kept, new_events, written)
    return answers


def _look(connection: Connection, given: Sequence[Request]) -> Standing:
    keys = sorted({event.key for request in given for event in request.events})
    columns = (events.c.source, events.c.tenant, events.c.event_id)
    found: Standing = {}
    for some in _portions(keys):
        wanted = select(*columns, events.c.id, events.c.body_sha256).where(tuple_(*columns).in_(some))
        for source, tenant, event_id, id_, sha256 in connection.execute(wanted):
            found[(source, tenant, event_id)] = (bytes(id_), bytes(sha256))
    return found


def _portions(keys: list[Any]) -> Iterator[list[Any]]:
    for at in range(0, len(keys), LOOK):
        yield keys[at : at + LOOK]


def _conflicting(
    connection: Connection, other: Sequence[tuple[Request, Event, bytes]]
) -> list[tuple[Request, dict[str, Any]]]:
    """The conflicts that are worth a row: bodies not seen before, up to the bound of each event."""
    seen: dict[bytes, set[bytes]] = {}
    rows = []
    for request, event, stands in other:
        if stands not in seen:
            had = select(conflicts.c.body_sha256).where(conflicts.c.event == stands)
            seen[stands] = {bytes(sha256) for (sha256,) in connection.execute(had)}
        if event.body_sha256 in seen[stands] or len(seen[stands]) >= CONFLICTS_PER_EVENT:
            continue
        seen[stands].add(event.body_sha256)
        row = {
            "id": event.id,
            "event": stands,
            "body_sha256": event.body_sha256,
            "request": request.id,
            "received_at": request.received_at,
        }
        rows.append((request, row))
    return rows


def _write(
    connection: Connection,
    kept: Sequence[Request],
    new: Sequence[tuple[Request, Event]],
    other: Sequence[tuple[Request, dict[str, Any]]],
) -> None:
    try:
        if new:
            connection.execute(insert(events), [_event(*one) for one in new])
            connection.execute(insert(runs), [_run(*one) for one in new])
        if other:
            connection.execute(insert(conflicts), [row for _, row in other])
    except IntegrityError as error:
        raise Clash(str(error.orig)) from error
    if kept:
        connection.execute(insert(requests), [_request(one) for one in kept])


def _request(one: Request) -> dict[str, Any]:
    return {
        "id": one.id,
        "source": one.source,
        "received_at": one.received_at,
        "url": one.url,
        "headers": one.headers,
        "body": one.body,
    }


def _event(request: Request, one: Event) -> dict[str, Any]:
    return {
        "id": one.id,
        "source": one.source,
        "tenant": one.tenant,
        "event_id": one.event_id,
        "type": one.type,
        "body_sha256": one.body_sha256,
        "request": request.id,
        "item": one.item,
        "received_at": request.received_at,
        "occurred_at": one.occurred_at,
        "sent_at": one.sent_at,
        "proven": one.proven,
        "key_id": one.key_id,
        "schema_version": one.schema_version,
        "correlation_id": one.correlation_id,
    }


def _run(request: Request, one: Event) -> dict[str, Any]:
    """The first run of an event has the event's id."""
    return {
        "id": one.id,
        "event": one.id,
        "number": 0,
        "reason": None,
        "state": "parked" if one.parked else "accepted",
        "attempts": 0,
        "due_at": None if one.parked else request.received_at,
        "changed": False,
        "accepted_at": request.received_at,
    }
