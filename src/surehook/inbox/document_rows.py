"""Documents and their journal as rows: reading them, and taking an event out of a document's queue."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import structs

from surehook.core.workflow.decide import Document, Step
from surehook.ports.inbox import DocumentRow

_document = msgspec.json.Decoder(Document)
_step = msgspec.json.Decoder(Step)


def without(document: Document, event_id: str) -> Document:
    """Take one event out of the document's queue: it is handed in again when its run is due."""
    return structs.replace(
        document, waiting=tuple(one for one in document.waiting if one.event.id != event_id)
    )


def out_of_line(row: DocumentRow, event_id: str, now: int) -> DocumentRow:
    """Take one event out of the queue in a document's row."""
    document = document_of(row.body)
    if document is None:
        return row
    body = msgspec.json.encode(without(document, event_id)).decode()
    return structs.replace(row, body=body, updated_at=now)


def step_of(body: str) -> Step:
    """Read a step from its row."""
    return _step.decode(body)


def steps_of(bodies: Iterable[str]) -> list[Step]:
    """Read steps from the journal's rows."""
    return [step_of(body) for body in bodies]


def document_of(body: str | None) -> Document | None:
    """Read a document from its row."""
    return None if body is None else _document.decode(body)
