"""Requests and their events on the way in: new ones are written, repeats and conflicts are told apart.

Under load nearly everything is new, so a batch is first inserted as if all of it were, without looking. If one row was
there already the database says so, the transaction is given up, and the same batch comes again with a look before it
(`careful`). The unique constraint decides in both cases; looking only says what it will decide.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError

from surehook.inbox.sql.bulk import Row, Rows, insert_rows
from surehook.inbox.sql.idle_timeout import StoreBounds
from surehook.inbox.sql.keyed import Keyed
from surehook.inbox.sql.tables import EVENT_KEY, conflicts, events, requests, runs
from surehook.ports.inbox import Clash, Stored, StoredEvent, StoredRequest

_EVENT = (
    "id", "source", "tenant", "event_id", "type", "body_sha256", "request", "item", "received_at", "occurred_at", "sent_at",
    "proven", "key_id", "schema_version", "correlation_id",
)  # fmt: skip
_RUN = ("id", "event", "number", "state", "attempts", "due_at", "changed", "accepted_at")
_REQUEST = ("id", "source", "received_at", "url", "headers", "body")
_CONFLICT = ("id", "event", "body_sha256", "request", "received_at")

Standing = dict[tuple[str, str, str], tuple[bytes, bytes]]  # key → id and hash of the event that stands

_KNOWN = Keyed(EVENT_KEY, lambda given: select(*EVENT_KEY, events.c.id, events.c.body_sha256).where(given))
# Other bodies kept for one event: a sender that never repeats itself must not fill the disk.
CONFLICTS_PER_EVENT = 10


def persist(
    connection: Connection,
    given: Sequence[StoredRequest],
    *,
    careful: bool,
    bounds: StoreBounds | None = None,
) -> list[list[Stored]]:
    """See the port; `bounds` are told to PostgreSQL in the same statement."""
    standing = _look(connection, given) if careful else {}
    answers: list[list[Stored]] = []
    new_events: list[tuple[StoredRequest, StoredEvent]] = []
    other: list[tuple[StoredRequest, StoredEvent, bytes]] = []
    kept: list[StoredRequest] = []
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
    _write(connection, kept, new_events, written, bounds)
    return answers


def _look(connection: Connection, given: Sequence[StoredRequest]) -> Standing:
    keys = sorted({event.key for request in given for event in request.events})
    found: Standing = {}
    for source, tenant, event_id, id_, sha256 in _KNOWN.rows(connection, keys):
        found[(source, tenant, event_id)] = (bytes(id_), bytes(sha256))
    return found


def _conflicting(
    connection: Connection, other: Sequence[tuple[StoredRequest, StoredEvent, bytes]]
) -> list[tuple[StoredRequest, Row]]:
    """Choose the conflicts that are worth a row: bodies not seen before, up to the bound of each event."""
    seen: dict[bytes, set[bytes]] = {}
    rows = []
    for request, event, stands in other:
        if stands not in seen:
            had = select(conflicts.c.body_sha256).where(conflicts.c.event == stands)
            seen[stands] = {bytes(sha256) for (sha256,) in connection.execute(had)}
        if event.body_sha256 in seen[stands] or len(seen[stands]) >= CONFLICTS_PER_EVENT:
            continue
        seen[stands].add(event.body_sha256)
        row = (event.id, stands, event.body_sha256, request.id, request.received_at)
        rows.append((request, row))
    return rows


def _write(
    connection: Connection,
    kept: Sequence[StoredRequest],
    new: Sequence[tuple[StoredRequest, StoredEvent]],
    other: Sequence[tuple[StoredRequest, Row]],
    bounds: StoreBounds | None,
) -> None:
    try:
        insert_rows(
            connection,
            Rows(events, _EVENT, [_event(*one) for one in new]),
            Rows(runs, _RUN, [_run(*one) for one in new]),
            Rows(conflicts, _CONFLICT, [row for _, row in other]),
            Rows(requests, _REQUEST, [_request(one) for one in kept]),
            bounds=bounds,
        )
    except IntegrityError as error:
        raise Clash(str(error.orig)) from error


def _request(one: StoredRequest) -> Row:
    return (one.id, one.source, one.received_at, one.url, one.headers, one.body)


def _event(request: StoredRequest, one: StoredEvent) -> Row:
    return (
        one.id, one.source, one.tenant, one.event_id, one.type, one.body_sha256, request.id, one.item,
        request.received_at, one.occurred_at, one.sent_at, one.proven, one.key_id, one.schema_version, one.correlation_id,
    )  # fmt: skip


def _run(request: StoredRequest, one: StoredEvent) -> Row:
    """Make the first run of an event, which has the event's id."""
    at = request.received_at
    state, due_at = ("parked", None) if one.parked else ("accepted", at)
    return (one.id, one.id, 0, state, 0, due_at, False, at)
