"""Documents and their journal as rows: reading them, taking an event out of a document's queue, and keeping its place."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import structs

from surehook.core.workflow.decide import Arrival, Document, Step, Table, leave, put_off
from surehook.ports.inbox import DocumentRow
from surehook.ports.inbox_runs import Run

_document = msgspec.json.Decoder(Document)
_step = msgspec.json.Decoder(Step)


def out_of_line(table: Table, row: DocumentRow, run: Run, now: int, *, back_at: int | None) -> DocumentRow:
    """Take an event out of the queue in a document's row; it is handed in again by then, if it is."""
    document = document_of(row.body)
    if document is None:
        return row
    left = leave(table, document, run.event_id, run.source, now, back_at=back_at)
    return structs.replace(row, body=text_of(left), updated_at=now)


def placed(
    table: Table,
    document: Document | None,
    arrival: Arrival,
    run: Run,
    now: int,
    *,
    back_at: int | None,
    has_failed: bool = True,
) -> Document | None:
    """Keep an event's place in its document, as it is handed in again by then; None: give it up. A replay has none to keep."""
    if run.number > 0 or (document is None and back_at is None):
        return document
    return put_off(table, document, arrival, now, back_at=back_at, has_failed=has_failed)


def text_of(document: Document) -> str:
    """Write a document for its row."""
    return msgspec.json.encode(document).decode()


def step_of(body: str) -> Step:
    """Read a step from its row."""
    return _step.decode(body)


def steps_of(bodies: Iterable[str]) -> list[Step]:
    """Read steps from the journal's rows."""
    return [step_of(body) for body in bodies]


def document_of(body: str | None) -> Document | None:
    """Read a document from its row."""
    return None if body is None else _document.decode(body)
