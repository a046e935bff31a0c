"""Accepting events: one transaction of about five statements, however large the batch.

Most items are certainly new (our own id, no key), so nothing is looked up for them. If a row exists all the same, or
cannot be stored, the batch fails and runs again item by item, each in a savepoint, so that only the bad row is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from surehook.core.ids import floor, millis
from surehook.core.instants import DAY_MS
from surehook.ledgers import changes as notes
from surehook.ledgers.common.errors import Unstorable
from surehook.ledgers.sqlite.fan_out import MANY, write_deliveries
from surehook.ledgers.sqlite.nodes import fence
from surehook.ledgers.sqlite.rows import run_batch
from surehook.ledgers.sqlite.session import SqliteSession
from surehook.ledgers.sqlite.statements import Values, query
from surehook.ledgers.sqlite.statements import batch as batch_statement
from surehook.ports.ledger import AcceptResult, Incoming, Taken

# A repeat is recognized by its Idempotency-Key for so long (docs/design.md).
KEY_LIFE_MS = DAY_MS


class _First(NamedTuple):
    """The first event that came with an id or a key."""

    event: bytes
    tenant: str
    digest: bytes
    fan_out: int


def accept(
    session: SqliteSession, batch: Sequence[Incoming], *, node: bytes, version: int, now: int
) -> AcceptResult:
    try:
        with session.writing():
            seen = fence(session, node)
            if version < seen.version and _is_concerned(session, batch, version, seen.version):
                return AcceptResult(True, [], seen.version)
            taken = _take(session, batch, seen.number, now, seen.lag_ms, careful=False)
            return AcceptResult(False, taken, seen.version)
    except Unstorable:
        pass
    with session.writing():
        seen = fence(session, node)
        if version < seen.version and _is_concerned(session, batch, version, seen.version):
            return AcceptResult(True, [], seen.version)
        taken = [_take_alone(session, item, seen.number, now, seen.lag_ms) for item in batch]
        return AcceptResult(False, taken, seen.version)


def _is_concerned(session: SqliteSession, batch: Sequence[Incoming], since: int, newest: int) -> bool:
    if newest - since > notes.MEETINGS_MOST:
        return True
    found = session.rows(query("noted_since"), (since,))
    return notes.concern(found, batch, since=since, newest=newest)


def _take_alone(session: SqliteSession, item: Incoming, node: int, now: int, lag_ms: int) -> Taken:
    session.rows("savepoint item")
    try:
        (taken,) = _take(session, (item,), node, now, lag_ms, careful=True)
    except Unstorable:
        session.rows("rollback to item")
        taken = Taken(item.event.id, 0, False, "unstorable")
    session.rows("release item")
    return taken


def _take(
    session: SqliteSession, batch: Sequence[Incoming], node: int, now: int, lag_ms: int, *, careful: bool
) -> list[Taken]:
    """Write the new items and answer for all. `careful`: even our own ids may exist already."""
    doubtful = [item for item in batch if item.given or item.event.idempotency_key is not None or careful]
    if not doubtful:
        _write(session, batch, node, now, lag_ms)
        return [Taken(item.event.id, item.event.fan_out, True) for item in batch]
    keys = _known_keys(session, doubtful, now)
    events = _known_events(session, doubtful if careful else [item for item in doubtful if item.given])
    fresh: list[Incoming] = []
    taken: list[Taken] = []
    for item in batch:
        answer = _repeat(session, item, keys, events)
        if answer is None:
            event = item.event
            first = _First(event.id, event.tenant, event.digest, event.fan_out)
            events[event.id] = first
            if item.event.idempotency_key is not None:
                keys[event.tenant, item.event.idempotency_key] = first
            fresh.append(item)
            answer = Taken(event.id, event.fan_out, True)
        taken.append(answer)
    if fresh:
        _write(session, fresh, node, now, lag_ms)
        _write_keys(session, fresh, now)
    return taken


def _repeat(
    session: SqliteSession, item: Incoming, keys: dict[tuple[str, str], _First], events: dict[bytes, _First]
) -> Taken | None:
    """Return the answer for an item that came before; None if it is new.

    1. A known key with another digest is a conflict; with the same digest the item repeats the key's event.
    2. A known id with another tenant or digest is a conflict; otherwise the item repeats that event.
    3. A repeat whose rows this very item has written, in a commit whose answer was lost, counts as new.
    """
    event = item.event
    if item.event.idempotency_key is not None:
        known = keys.get((event.tenant, item.event.idempotency_key))
        if known is not None:
            if known.digest != event.digest:
                return Taken(known.event, known.fan_out, False, "idempotency_conflict")
            return Taken(known.event, known.fan_out, known.event == event.id and _is_ours(session, item))
    there = events.get(event.id)
    if there is None:
        return None
    if there.tenant != event.tenant or there.digest != event.digest:
        return Taken(there.event, there.fan_out, False, "event_id_conflict")
    return Taken(there.event, there.fan_out, _is_ours(session, item))


def _is_ours(session: SqliteSession, item: Incoming) -> bool:
    """Return True if existing rows were written by this very item, in a commit whose answer was lost.

    An id that we made belongs to nobody else. One that the publisher chose may come twice, but the ids of the deliveries
    are made anew for each item.
    """
    if not item.given:
        return True
    ids: Values = [delivery.id for delivery in item.deliveries]
    return any(session.rows(*piece) for piece in batch_statement("known_deliveries").pieces(ids))


def _known_keys(session: SqliteSession, items: Sequence[Incoming], now: int) -> dict[tuple[str, str], _First]:
    values: Values = []
    for item in items:
        if item.event.idempotency_key is not None:
            values += (item.event.tenant, item.event.idempotency_key)
    known: dict[tuple[str, str], _First] = {}
    for piece in batch_statement("known_keys").pieces(values, after=(now,)):
        for tenant, key, event, digest, fan_out in session.rows(*piece):
            known[tenant, key] = _First(event, tenant, digest, fan_out)
    return known


def _known_events(session: SqliteSession, items: Sequence[Incoming]) -> dict[bytes, _First]:
    values: Values = [item.event.id for item in items]
    return {
        event: _First(event, tenant, digest, fan_out)
        for piece in batch_statement("known_events").pieces(values)
        for event, tenant, digest, fan_out in session.rows(*piece)
    }


def _write(session: SqliteSession, items: Sequence[Incoming], node: int, now: int, lag_ms: int) -> None:
    events: Values = []
    deliveries: Values = []
    many: list[Incoming] = []
    late = floor(now - lag_ms)
    lagging = False
    for item in items:
        e = item.event
        events += (
            e.id, e.tenant, e.type, e.schema_version, e.subject, e.sequence, e.workflow_version, e.correlation_id,
            e.causation_id, e.source, e.occurred_at, e.accepted_at, e.digest, e.fan_out, e.body, e.idempotency_key,
        )  # fmt: skip
        if e.id < late:
            lagging = True
        if len(item.deliveries) >= MANY:
            many.append(item)
            continue
        for d in item.deliveries:
            parked = d.parked
            deliveries += (
                d.id, d.event, d.endpoint, d.tenant, d.type, d.lane, d.attempt, d.due_at, d.born_at, d.overdue_at,
                node if d.held and parked is None else None, parked, None if parked is None else now,
            )  # fmt: skip
    run_batch(session, "accept_events", events)
    if deliveries:
        run_batch(session, "accept_deliveries", deliveries)
    for item in many:
        write_deliveries(session, item.event, item.deliveries, node=node, now=now)
    if lagging:
        _raise_lag(session, items, lag_ms)


def _write_keys(session: SqliteSession, items: Sequence[Incoming], now: int) -> None:
    values: Values = []
    for item in items:
        if item.event.idempotency_key is not None:
            e = item.event
            values += (e.tenant, item.event.idempotency_key, e.id, e.digest, e.fan_out, now + KEY_LIFE_MS)
    if values:
        run_batch(session, "accept_keys", values)


def _raise_lag(session: SqliteSession, items: Sequence[Incoming], lag_ms: int) -> None:
    """Store the greatest lag of an acceptance behind its id's instant, rounded up to a power of two."""
    greatest = max(item.event.accepted_at - millis(item.event.id) for item in items)
    if greatest > lag_ms:
        session.run(query("raise_lag"), (1 << greatest.bit_length(),))
