"""A row of an outbox: an event that an application has written beside its own rows, and nobody has published yet.

Columns follow Debezium's outbox router (`id`, `aggregatetype`, `aggregateid`, `type`, `payload`), so that change data capture
can read the table too. Fields of an event that came later than the table live in `fields`, so old and new versions
of this package write and read the same table.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from surehook.core.envelope import EventIn, decode_item
from surehook.core.errors import Problem

# Columns that a publisher writes, in the order of statements.
COLUMNS = (
    "id", "aggregatetype", "aggregateid", "type", "payload", "tenant", "subject", "sequence", "fields", "created_at",
)  # fmt: skip
# Columns that a reader needs of a row.
READ = ("position", "id", "tenant", "type", "payload", "subject", "sequence", "fields", "created_at")

LAST_MS = 253_402_300_799_999  # the end of year 9999, the last that RFC 3339 can write

_encode = msgspec.json.Encoder().encode


class OutboxRow(Struct, frozen=True, gc=False):
    """One row.

    position    order of writing, given by the database; on SQLite any column may hold something else than text
    id          the event's, as text: a second publication of the row is a repeat
    payload     the event's `data`, JSON; None: the row is larger than any event
    fields      JSON object with other fields of the event; None: it has none
    created_at  Unix milliseconds of the application's clock; None: something else stands there
    """

    position: int
    id: str
    tenant: str
    type: str
    payload: str | None
    subject: str | None
    sequence: int | None
    fields: str | None
    created_at: int | None


class OutboxCount(Struct, frozen=True):
    """Rows that wait, rows put aside, and when the oldest that waits was written (Unix milliseconds; None: none waits)."""

    waiting: int
    refused: int
    oldest_at: int | None

    def lag_s(self, now_ms: int) -> float:
        """Seconds for which the oldest row has waited; 0 where none waits."""
        return waited_s(self.oldest_at, now_ms)


def waited_s(since_ms: int | None, now_ms: int) -> float:
    """Seconds since then; 0 where nothing waits."""
    return 0.0 if since_ms is None else max(0, now_ms - since_ms) / 1000


def written_at(value: object) -> int | None:
    """The time of a row, Unix milliseconds; None for what is none: a column of SQLite takes anything."""
    return value if isinstance(value, int) and 0 <= value <= LAST_MS else None


class OutboxFigures(Struct, frozen=True):
    """Figures of a reader for its metrics: rows since its start, rows that wait and lie aside, and for how long the oldest waits.
    `is_troubled`: the server or the database is away."""

    published: int
    refused: int
    waiting: int
    aside: int
    lag_s: float
    is_troubled: bool


class _Head(Struct, omit_defaults=True, gc=False):
    id: str
    tenant: str
    type: str
    subject: str | None = None
    sequence: int | None = None


def item_of(row: OutboxRow) -> bytes:
    """A row that is an event as an item of `POST /v1/events/batch`."""
    assert row.payload is not None, "`event_of` has found no fault in it"
    return item(row.id, row.tenant, row.type, row.payload.encode(), row.subject, row.sequence, row.fields)


def item(
    id: str,
    tenant: str,
    type: str,
    data: bytes,
    subject: str | None,
    sequence: int | None,
    fields: str | None,
) -> bytes:
    """An event as an item of a batch."""
    head = _encode(_Head(id, tenant, type, subject, sequence))
    return b"".join((head[:-1], _inner(fields), b',"data":', data, b"}"))


def _inner(fields: str | None) -> bytes:
    """The members of `fields` after a comma. A text that is no object spoils the item."""
    text = "{}" if fields is None else fields.strip()
    if not (text.startswith("{") and text.endswith("}")):
        return b",!"
    return b"," + text[1:-1].encode() if text[1:-1].strip() else b""


def event_of(row: OutboxRow) -> EventIn | Problem:
    """The row's event, or the reason why no server would take it: anybody with the right to insert may have written it."""
    if row.payload is None:
        return Problem("body_too_large", "the row is larger than any event", field="data", status=413)
    texts, others = (row.id, row.tenant, row.type, row.payload), (row.subject, row.fields)
    if (
        not all(isinstance(text, str) for text in texts)
        or not all(isinstance(text, str | None) for text in others)
        or not isinstance(row.sequence, int | None)
    ):
        return Problem("wrong_type", "a column holds something else than text or a number")
    try:
        return whole(decode_item(item_of(row)), row.payload.encode())
    except UnicodeError:
        return Problem("bad_text", "a column holds half of a surrogate pair, which no UTF-8 text can")


def whole(event: EventIn | Problem, payload: bytes) -> EventIn | Problem:
    """The event, if its data is all of the payload: one that ends early could go on with fields of the event."""
    if isinstance(event, EventIn) and event.data != payload.strip(b" \t\n\r"):
        return Problem("invalid_json", "the payload is more than one JSON value", field="data")
    return event


def fields_of(given: Mapping[str, object]) -> str | None:
    """The column `fields`: those that are not None. Returns None where there is none."""
    present = {name: value for name, value in given.items() if value is not None}
    return _encode(present).decode() if present else None


def aggregate_of(type: str, subject: str | None, id: str) -> tuple[str, str]:
    """Debezium's `aggregatetype` and `aggregateid`: the type up to its first dot, and the subject or else the event's id."""
    return type.partition(".")[0], id if subject is None else subject
