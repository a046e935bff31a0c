"""The tables. Names begin with `surehook_inbox_`, so that they can lie in the application's own schema.

    requests   what came over the wire, byte for byte; removed when the retention of bodies ends
    events     the dedupe record: unique (source, tenant, event_id); written once, outlives the request
    runs       each processing of an event: state, lease, result; small, and the only rows that change
    conflicts  other bodies under the id of an event that stands
    documents  where each document stands in its workflow
    steps      every decision about a document, with the state before and after; only ever added to
    receipts   what senders that asked are to be told of their events, and when; one for an event
    tries      the last attempts of an event that failed; in the order of their keys

Which version of the tables each came with: `versions.py`.

Times are Unix milliseconds. Hashes and ids are bytes.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    TextClause,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeEngine

PREFIX = "surehook_inbox_"
ID_BYTES = 16  # of an event, a run, a request
NAME_CHARS = 64  # of a source
TENANT_CHARS = 128
ID_CHARS = 255  # of an event id, as verification lets them through
TEXT_CHARS = 256
CODE_CHARS = 64
ERROR_CHARS = 2_000  # the end of a traceback says where; the rest is in the logs
MESSAGE_CHARS = 500  # of an attempt: what it said, without where
ATTEMPTS_MOST = 32_767  # that a SMALLINT holds; counting ends there
LEASES = 2  # of ours: the lease of another process may last for that many
TRIES = 20  # of one event: as many as two runs have by default, and about 20 KB

metadata = MetaData()


def _binary(length: int) -> TypeEngine[bytes]:
    return LargeBinary(length).with_variant(mysql.BINARY(length), "mysql", "mariadb")


def _exact(length: int) -> TypeEngine[str]:
    """Text that is compared byte for byte: MySQL's default takes `A` and `a` for the same id."""
    return String(length).with_variant(mysql.VARCHAR(length, collation="utf8mb4_bin"), "mysql", "mariadb")


_LONG = LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb")
_TEXT = Text().with_variant(mysql.MEDIUMTEXT(charset="utf8mb4"), "mysql", "mariadb")
_OPTIONS: Any = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_row_format": "DYNAMIC"}

requests = Table(
    PREFIX + "requests",
    metadata,
    Column("id", _binary(ID_BYTES), primary_key=True),
    Column("source", _exact(NAME_CHARS), nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("url", _TEXT),
    Column("headers", _TEXT, nullable=False),
    Column("body", _LONG, nullable=False),
    **_OPTIONS,
)

events = Table(
    PREFIX + "events",
    metadata,
    Column("id", _binary(ID_BYTES), primary_key=True),
    Column("source", _exact(NAME_CHARS), nullable=False),
    Column("tenant", _exact(TENANT_CHARS), nullable=False),
    Column("event_id", _exact(ID_CHARS), nullable=False),
    Column("type", _exact(ID_CHARS)),
    Column("body_sha256", _binary(32), nullable=False),
    Column("request", _binary(ID_BYTES), nullable=False),
    Column("item", Integer),
    Column("received_at", BigInteger, nullable=False),
    Column("occurred_at", BigInteger),
    Column("sent_at", BigInteger),
    Column("proven", String(64), nullable=False),
    Column("key_id", String(TEXT_CHARS)),
    Column("schema_version", String(CODE_CHARS)),
    Column("correlation_id", String(TEXT_CHARS)),
    UniqueConstraint("source", "tenant", "event_id", name=PREFIX + "events_once"),
    **_OPTIONS,
)

runs = Table(
    PREFIX + "runs",
    metadata,
    Column("id", _binary(ID_BYTES), primary_key=True),
    Column("event", _binary(ID_BYTES), nullable=False),
    Column("number", Integer, nullable=False),
    Column("reason", String(TEXT_CHARS)),
    Column("state", String(16), nullable=False),
    Column("attempts", SmallInteger, nullable=False),
    # When a worker may take it: at once, after a failure's wait, or when the lease lapses. Nothing to do: NULL.
    Column("due_at", BigInteger),
    Column("lease", _binary(ID_BYTES)),
    Column("accepted_at", BigInteger, nullable=False),
    Column("processed_at", BigInteger),
    Column("finalized_at", BigInteger),
    Column("handler", String(TEXT_CHARS)),
    Column("handler_version", String(CODE_CHARS)),
    Column("result_sha256", _binary(32)),
    Column("changed", Boolean, nullable=False),
    Column("error_code", String(CODE_CHARS)),
    Column("error", _TEXT),
    UniqueConstraint("event", "number", name=PREFIX + "runs_numbered"),
    **_OPTIONS,
)
EVENT_KEY = (events.c.source, events.c.tenant, events.c.event_id)

conflicts = Table(
    PREFIX + "conflicts",
    metadata,
    Column("id", _binary(ID_BYTES), primary_key=True),
    Column("event", _binary(ID_BYTES), nullable=False),
    Column("body_sha256", _binary(32), nullable=False),
    Column("request", _binary(ID_BYTES), nullable=False),
    Column("received_at", BigInteger, nullable=False),
    UniqueConstraint("event", "body_sha256", name=PREFIX + "conflicts_once"),
    **_OPTIONS,
)

documents = Table(
    PREFIX + "documents",
    metadata,
    Column("document_type", _exact(TENANT_CHARS), primary_key=True),
    Column("tenant", _exact(TENANT_CHARS), primary_key=True),
    Column("document", _exact(ID_CHARS), primary_key=True),
    Column("state", String(TENANT_CHARS), nullable=False),
    Column("body", _TEXT),
    Column("wake_at", BigInteger),
    Column("updated_at", BigInteger, nullable=False),
    **_OPTIONS,
)

steps = Table(
    PREFIX + "steps",
    metadata,
    Column("id", _binary(ID_BYTES), primary_key=True),
    Column("document_type", _exact(TENANT_CHARS), nullable=False),
    Column("tenant", _exact(TENANT_CHARS), nullable=False),
    Column("document", _exact(ID_CHARS), nullable=False),
    Column("event", _binary(ID_BYTES)),
    Column("event_id", _exact(ID_CHARS), nullable=False),
    Column("verdict", String(16), nullable=False),
    Column("decided_at", BigInteger, nullable=False),
    Column("body", _TEXT, nullable=False),
    **_OPTIONS,
)

receipts = Table(
    PREFIX + "receipts",
    metadata,
    Column("event", _binary(ID_BYTES), primary_key=True),
    Column("source", _exact(NAME_CHARS), nullable=False),
    # The sender's ids, as it wrote them.
    Column("event_id", _exact(ID_CHARS), nullable=False),
    Column("delivery", String(CODE_CHARS), nullable=False),
    Column("endpoint", String(CODE_CHARS), nullable=False),
    Column("word", _TEXT, nullable=False),
    # When it is to be told, for the first time or again. Told: NULL.
    Column("due_at", BigInteger),
    Column("lease", _binary(ID_BYTES)),
    Column("attempts", Integer, nullable=False),
    **_OPTIONS,
)

tries = Table(
    PREFIX + "tries",
    metadata,
    Column("event", _binary(ID_BYTES), primary_key=True),
    Column("at", BigInteger, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("attempt", SmallInteger, primary_key=True, autoincrement=False),
    Column("code", String(CODE_CHARS), nullable=False),
    Column("handler", String(TEXT_CHARS)),
    Column("name", String(TEXT_CHARS)),
    Column("message", _TEXT),
    **_OPTIONS,
)

_open = runs.c.due_at.is_not(None)
Index(PREFIX + "runs_due", runs.c.due_at, runs.c.id, sqlite_where=_open, postgresql_where=_open)
# What stands still and is looked for by people. In this very text, as SQLite compares it with that of a query.
STOPPED = ("dead", "held", "parked")


def stopped() -> TextClause:
    return text("state in ('dead', 'held', 'parked')")


Index(PREFIX + "runs_stopped", runs.c.state, runs.c.id, sqlite_where=stopped(), postgresql_where=stopped())
Index(PREFIX + "requests_received", requests.c.received_at)
Index(PREFIX + "events_received", events.c.received_at)
_waits = documents.c.wake_at.is_not(None)
# For applications of a version that has only this one; the next is in its place.
Index(PREFIX + "documents_wake", documents.c.wake_at, sqlite_where=_waits, postgresql_where=_waits)
Index(
    PREFIX + "documents_due",
    documents.c.document_type,
    documents.c.wake_at,
    sqlite_where=_waits,
    postgresql_where=_waits,
)
Index(PREFIX + "steps_of", steps.c.document, steps.c.document_type, steps.c.tenant, steps.c.id)
Index(PREFIX + "steps_event", steps.c.event)
_owed = receipts.c.due_at.is_not(None)
Index(
    PREFIX + "receipts_due", receipts.c.due_at, receipts.c.event, sqlite_where=_owed, postgresql_where=_owed
)


def unindexed(column: Column[str]) -> ColumnElement[str]:
    """A column that is to decide without an index that begins with it: all events of a source, or all documents of a type, would
    be read for the few that are wanted."""
    return column.concat("")
