"""Retention: a walk through what is old, in the order of arrival, some pages of rows in each transaction.

What still has something to come may be old and many: a hundred thousand events that wait for a handler. So a walk remembers its
place, and each of its transactions looks at `PAGES * PAGE` rows of a table at most, whatever it finds there. A request may have a
thousand events: once `EVENTS` were looked at, a transaction removes no further bodies. A page is read first, and then, by these
very rows, what is needed of them: with a condition on whole tables (`NOT IN`, `NOT EXISTS`) it is the planner who decides how
often everything that is unfinished is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import Connection, Select, Table, delete, exists, or_, select

from surehook.core import ids
from surehook.inbox.sql.settling import WAITING
from surehook.inbox.sql.tables import TRIES, conflicts, events, receipts, requests, runs, tries
from surehook.ports.inbox_pruning import Place, Pruned, PrunedPart, PrunePlace

PAGE = 400  # rows: two parameters each, below the 999 of old SQLite builds
EVENTS = 4_000  # and those of one more request at most
FIRST_REQUESTS = 4  # of a page, whose events show how many requests may be looked at together
PAGES = 2  # of each table in one transaction: some milliseconds, for which SQLite's writer is held


def prune(
    connection: Connection,
    *,
    bodies_before: int,
    events_before: int,
    limit: int,
    place: PrunePlace,
    within_s: float | None,
) -> PrunedPart:
    """Go on from a place. Never what still has something to come: the body of an open run stays however old it is.

    What another one removes just now is passed over, not waited for.
    """
    with _bounded(connection, within_s):
        bodies, bodies_at = _bodies(connection, bodies_before, limit, place.requests)
        old, events_at = _events(connection, events_before, limit, place.events)
        if place.events is not None and events_at is None:
            _sweep(connection, events_before, limit)
    return PrunedPart(Pruned(bodies, old), PrunePlace(requests=bodies_at, events=events_at))


def _bodies(connection: Connection, before: int, limit: int, place: Place | None) -> tuple[int, Place | None]:
    removed, seen = 0, 0
    for _ in range(PAGES):
        if place is None or removed >= limit or seen >= EVENTS:
            break
        rows, place = _page(connection, requests, before, place, min(PAGE, limit - removed))
        looked, unneeded, read = _unneeded(connection, rows, EVENTS - seen)
        seen += read
        if looked < len(rows):
            place = rows[looked - 1]
        free = _locked(connection, requests, unneeded)
        if free:
            connection.execute(delete(requests).where(requests.c.id.in_(free)))
        removed += len(free)
    return removed, place


def _events(connection: Connection, before: int, limit: int, place: Place | None) -> tuple[int, Place | None]:
    removed = 0
    for _ in range(PAGES):
        if place is None or removed >= limit:
            break
        rows, place = _page(connection, events, before, place, min(PAGE, limit - removed))
        done = _finished(connection, [id_ for _, id_ in rows], lock=False)
        # A replay may have committed between the look and the lock.
        old = _finished(connection, _locked(connection, events, done), lock=True)
        if old:
            connection.execute(delete(conflicts).where(conflicts.c.event.in_(old)))
            connection.execute(delete(runs).where(runs.c.event.in_(old)))
            connection.execute(delete(receipts).where(receipts.c.event.in_(old)))
            connection.execute(delete(tries).where(tries.c.event.in_(old)))
            connection.execute(delete(events).where(events.c.id.in_(old)))
        removed += len(old)
    return removed, place


def page_of(table: Table, before: int, place: Place, limit: int) -> Select[int, bytes]:
    """The next rows by arrival, and by id where several came in one millisecond."""
    at, id_ = place
    came = table.c.received_at
    return (
        select(came, table.c.id)
        .where(came < before, came >= at, or_(came > at, table.c.id > id_))
        .order_by(came, table.c.id)
        .limit(limit)
    )


def _page(
    connection: Connection, table: Table, before: int, place: Place, limit: int
) -> tuple[list[Place], Place | None]:
    rows = [
        (int(at), bytes(id_)) for at, id_ in connection.execute(page_of(table, before, place, limit)).all()
    ]
    return rows, rows[-1] if len(rows) == limit else None


def _unneeded(connection: Connection, rows: Sequence[Place], most: int) -> tuple[int, list[bytes], int]:
    """Look at requests until they had `most` events: the number of them, those without an open run, and the number of events."""
    looked, seen, needed, together = 0, 0, set[bytes](), FIRST_REQUESTS
    while looked < len(rows) and seen < most:
        some = rows[looked : looked + together]
        request_of = _events_of(connection, some, most - seen)
        if len(request_of) > most - seen and len(some) > 1:  # one alone is looked at, whatever it has
            together = len(some) // 2
            continue
        needed |= _needed(connection, request_of)
        looked, seen = looked + len(some), seen + len(request_of)
        together = max(1, (most - seen) * looked // max(seen, looked))  # as many as fit, if they are as these
    return looked, [id_ for _, id_ in rows[:looked] if id_ not in needed], seen


def _events_of(connection: Connection, rows: Sequence[Place], most: int) -> dict[bytes, bytes]:
    """The events of these requests, with their requests; if there are more than `most`, some more than those, unless it is one
    request. An event came when its request did, and that has an index."""
    wanted = select(events.c.id, events.c.request).where(
        events.c.received_at.in_(sorted({at for at, _ in rows})),
        events.c.request.in_([id_ for _, id_ in rows]),
    )
    found = connection.execute(wanted if len(rows) == 1 else wanted.limit(most + 1))
    return {bytes(event): bytes(request) for event, request in found}


def _needed(connection: Connection, request_of: Mapping[bytes, bytes]) -> set[bytes]:
    """The requests of those of these events that have an open run."""
    is_needed = set[bytes]()
    for some in _portions(request_of, PAGE):
        is_needed |= {request_of[event] for event in _open(connection, some)}
    return is_needed


def _open(connection: Connection, wanted: Sequence[bytes]) -> set[bytes]:
    """Those of these events that have a run that is due, or waits. The rows are looked at here: with a condition on them, a
    planner may begin with all that are open."""
    found = connection.execute(_runs_of(wanted))
    return {bytes(event) for event, _, state, due_at in found if due_at is not None or state in WAITING}


def _runs_of(wanted: Sequence[bytes]) -> Select[bytes, int, str, int | None]:
    return select(runs.c.event, runs.c.number, runs.c.state, runs.c.due_at).where(runs.c.event.in_(wanted))


def _locked(connection: Connection, table: Table, wanted: Sequence[bytes]) -> list[bytes]:
    """Lock rows; those that another one has are passed over."""
    if not wanted:
        return []
    locking = select(table.c.id).where(table.c.id.in_(wanted)).order_by(table.c.id)
    return [bytes(id_) for (id_,) in connection.execute(locking.with_for_update(skip_locked=True))]


def _finished(connection: Connection, wanted: Sequence[bytes], *, lock: bool) -> list[bytes]:
    """Choose the events that have nothing to come: no run that is open, nor a newest one of which somebody may still say
    `finalize` or `reject`."""
    if not wanted:
        return []
    looking = _runs_of(wanted).order_by(runs.c.event, runs.c.number)
    is_open, newest = set[bytes](), dict[bytes, str]()
    for event, _, state, due_at in connection.execute(
        looking.with_for_update(read=True) if lock else looking
    ):
        newest[bytes(event)] = state
        if due_at is not None or state in WAITING:
            is_open.add(bytes(event))
    return [event for event in wanted if event not in is_open and newest.get(event) != "processed"]


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


def _portions(values: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    """`itertools.batched` of Python 3.12."""
    rest = list(values)
    for at in range(0, len(rest), size):
        yield rest[at : at + size]


@contextmanager
def _bounded(connection: Connection, within_s: float | None) -> Iterator[None]:
    """Let no statement take longer than that: on PostgreSQL until the transaction ends, on MariaDB, which knows that of
    sessions alone, until this is done. SQLite and MySQL have no such bound."""
    dialect: Any = connection.dialect
    if within_s is None or not (dialect.name == "postgresql" or getattr(dialect, "is_mariadb", False)):
        yield
        return
    if dialect.name == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {round(within_s * 1000)}")
        yield
        return
    connection.exec_driver_sql(
        f"SET @surehook_most = @@SESSION.max_statement_time, SESSION max_statement_time = {within_s:g}"
    )
    try:
        yield
    finally:
        with suppress(Exception):  # the connection is lost, and its session with it
            connection.exec_driver_sql("SET SESSION max_statement_time = @surehook_most")
