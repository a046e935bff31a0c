"""Documents and their decisions. Documents are locked in the order of their keys, so two workers never wait for each other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, and_, insert, select, true
from sqlalchemy.dialects import postgresql, sqlite

from surehook.inbox.sql.bulk import ARRAYS, Rows, insert_missing, insert_rows, update_rows
from surehook.inbox.sql.claiming import LOADED, loaded
from surehook.inbox.sql.keyed import Keyed
from surehook.inbox.sql.tables import documents, events, runs, steps, stopped, unindexed
from surehook.ports.inbox import DocumentRow, HeldRun, StepRow
from surehook.ports.inbox_runs import DocumentKey, Run

_KEY = (documents.c.document_type, documents.c.tenant, documents.c.document)
_KEY_NAMES = ("document_type", "tenant", "document")
_STEP_KEY = (steps.c.document_type, steps.c.tenant, steps.c.document)
_KEPT = ("state", "body", "wake_at", "updated_at")
_NEW = (*_KEY_NAMES, "state", "updated_at")
_STEP = ("id", *_KEY_NAMES, "event", "event_id", "verdict", "decided_at", "body")

_ROWS = select(*_KEY, documents.c.body, documents.c.state, documents.c.wake_at, documents.c.updated_at)
_STANDING = Keyed(_KEY, lambda given: _ROWS.where(given).order_by(*_KEY))
_LOCKED = Keyed(_KEY, lambda given: _ROWS.where(given).order_by(*_KEY).with_for_update(of=documents))


def locked(connection: Connection, keys: Sequence[DocumentKey]) -> dict[DocumentKey, DocumentRow]:
    ordered = sorted(set(keys))
    if not ordered:
        return {}
    if connection.dialect.driver in ARRAYS:
        insert_missing(connection, Rows(documents, _NEW, [(*key, "", 0) for key in ordered]))
    else:
        rows = [dict(zip(_NEW, (*key, "", 0), strict=True)) for key in ordered]
        connection.execute(_unless_there(connection.dialect.name), rows)
    return {row.key: row for row in map(_row, _LOCKED.rows(connection, ordered))}


def standing(connection: Connection, keys: Sequence[DocumentKey]) -> dict[DocumentKey, DocumentRow]:
    """Return what `locked` would, without locking anything or making what is missing."""
    ordered = sorted(set(keys))
    found = {row.key: row for row in map(_row, _STANDING.rows(connection, ordered))}
    return {key: found.get(key) or DocumentRow(key=key, body=None, state="") for key in ordered}


def _unless_there(dialect: str) -> Any:
    if dialect == "postgresql":
        return postgresql.insert(documents).on_conflict_do_nothing()
    if dialect == "sqlite":
        return sqlite.insert(documents).on_conflict_do_nothing()
    return insert(documents).prefix_with("IGNORE")


def _row(found: Any) -> DocumentRow:
    document_type, tenant, document, body, state, wake_at, updated_at = found
    return DocumentRow(
        key=(document_type, tenant, document), body=body, state=state, wake_at=wake_at, updated_at=updated_at
    )


def keep(connection: Connection, rows: Sequence[DocumentRow]) -> None:
    kept = [(row.state, row.body, row.wake_at, row.updated_at, *row.key) for row in rows]
    update_rows(connection, documents, _KEPT, _KEY_NAMES, kept)


def journal(connection: Connection, rows: Sequence[StepRow]) -> None:
    made = [(row.id, *row.key, row.event, row.event_id, row.verdict, row.at, row.body) for row in rows]
    insert_rows(connection, Rows(steps, _STEP, made))


def _of(key: DocumentKey) -> Any:
    document_type, tenant, document = key
    return and_(
        steps.c.document == document, steps.c.document_type == document_type, steps.c.tenant == tenant
    )


def held(connection: Connection, key: DocumentKey, event_ids: Sequence[str]) -> list[Run]:
    came_early = select(steps.c.event).where(
        _of(key), steps.c.verdict == "early", steps.c.event_id.in_(event_ids)
    )
    found = connection.execute(
        LOADED.where(runs.c.event.in_(came_early), runs.c.state == "held")
        .order_by(runs.c.id)
        .with_for_update(of=runs)
    )
    return [loaded(row) for row in found]


def moved_by(connection: Connection, key: DocumentKey, event_id: str, source: str) -> Run | None:
    moved = select(steps.c.event).where(
        _of(key), steps.c.verdict == "applied", steps.c.event_id == event_id, steps.c.event.is_not(None)
    )
    found = connection.execute(
        LOADED.where(runs.c.event.in_(moved), runs.c.processed_at.is_not(None))
        .where(unindexed(events.c.source) == source if source else true())
        .order_by(runs.c.number.desc())
        .limit(1)
    ).first()
    return None if found is None else loaded(found)


def effective(connection: Connection, event: bytes) -> tuple[DocumentKey, str] | None:
    found = connection.execute(
        select(*_STEP_KEY, steps.c.event_id, steps.c.verdict, steps.c.body)
        .where(steps.c.event == event, steps.c.verdict.in_(("applied", "informational")))
        .order_by(steps.c.id.desc())
    ).all()
    if not found:
        return None
    document_type, tenant, document, event_id, _, body = found[0]
    key = (document_type, tenant, document)
    # Each move is taken back once, so they are counted: ids of another process may be of a clock that is ahead.
    moves = sum(one.verdict == "applied" for one in found)
    others = select(steps.c.body).where(_of(key), steps.c.event_id == event_id, steps.c.event.is_(None))
    undone = sum(_takes_back(str(one), str(body)) for (one,) in connection.execute(others))
    return None if 0 < moves <= undone else (key, str(body))


def _takes_back(body: str, move: str) -> bool:
    """Tell whether a step has taken back a move of the event whose step the other is."""
    later, moved = json.loads(body), json.loads(move)
    return bool(later["rule"] == "undone" and later.get("source") == moved.get("source"))


def held_after(connection: Connection, after: bytes, *, limit: int) -> list[HeldRun]:
    page = (
        select(runs.c.id, runs.c.event)
        .where(stopped(), runs.c.state == "held", runs.c.id > after)
        .order_by(runs.c.id)
        .limit(limit)
        .subquery()
    )
    waits = page.outerjoin(steps, and_(steps.c.event == page.c.event, steps.c.verdict == "early"))
    found = connection.execute(
        select(page.c.id, *_STEP_KEY, steps.c.body).select_from(waits).order_by(page.c.id, steps.c.id)
    )
    last = {}
    for id_, document_type, tenant, document, body in found:
        key = None if body is None else (document_type, tenant, document)
        last[bytes(id_)] = HeldRun(run=bytes(id_), key=key, step=body)
    return list(last.values())


def history(
    connection: Connection, document: str, *, document_type: str | None, tenant: str, limit: int
) -> list[tuple[DocumentRow, list[str]]]:
    wanted = [documents.c.document == document, documents.c.tenant == tenant]
    if document_type is not None:
        wanted.append(documents.c.document_type == document_type)
    else:  # the documents' own index begins with their type
        journals = select(steps.c.document_type).where(steps.c.document == document, steps.c.tenant == tenant)
        wanted.append(documents.c.document_type.in_(journals))
    rows = connection.execute(_ROWS.where(*wanted, documents.c.body.is_not(None)).order_by(*_KEY)).all()
    return [(row, _last_steps(connection, row.key, limit)) for row in map(_row, rows)]


def _last_steps(connection: Connection, key: DocumentKey, limit: int) -> list[str]:
    if not limit:
        return []
    found = connection.execute(
        select(steps.c.body).where(_of(key)).order_by(steps.c.id.desc()).limit(limit)
    ).all()
    return [str(body) for (body,) in reversed(found)]
