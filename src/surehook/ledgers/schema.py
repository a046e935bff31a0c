"""The tables of the ledger, declared once for SQLite and PostgreSQL.

Ids are sixteen bytes, instants Unix milliseconds. The tables of the hot path obey four rules: append rather than change,
delete rather than mark, at most three indexes per table, and no index on a state. Partial indexes hold only rows that
somebody looks for: a delivery that is created leased and delivered at once touches the key and the index of held rows only.

`delivery` holds unfinished deliveries. `attempt` is the history, and a finished delivery *is* its last row there (`end` is
set), which therefore has tenant, endpoint, type and event: lists need no join. Within a delivery, history rows are ordered by
`seq`, which encodes number and kind (`ledgers/history.py`).

Two small tables of retention and the notes of strays exist on PostgreSQL only (migrations 0009 and 0011).

Importing this module imports SQLAlchemy (about 0.25 s); the hot statements do not need it.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    text,
)

metadata = MetaData(naming_convention={"pk": "%(table_name)s_pkey"})

Id = LargeBinary(16)
Instant = BigInteger
# SQLite assigns row numbers only to a key whose type is exactly INTEGER.
Number = BigInteger().with_variant(Integer, "sqlite")


def _id(name: str, *, key: bool = False, optional: bool = False) -> Column[bytes]:
    return Column(name, Id, primary_key=key, nullable=optional)


def _text(name: str, *, key: bool = False, optional: bool = False) -> Column[str]:
    return Column(name, Text, primary_key=key, nullable=optional)


def _at(name: str, *, optional: bool = False) -> Column[int]:
    return Column(name, Instant, nullable=optional)


def _count(name: str, *, optional: bool = False, default: str | None = None) -> Column[int]:
    return Column(name, Integer, nullable=optional, server_default=default)


def _flag(name: str) -> Column[bool]:
    return Column(name, Boolean(create_constraint=False), nullable=False, server_default="0")


# -- configuration ------------------------------------------------------------------------------------

# One row. `lag_ms` is the greatest lag of an acceptance behind the instant in a publisher's own event id (rounded up to a
# power of two, so it is written a few times ever): it bounds searches by time.
configuration = Table(
    "configuration",
    metadata,
    Column("id", SmallInteger, primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("lag_ms", BigInteger, nullable=False, server_default="0"),
)

# The rows that each version changed (ports/registry.py): `kind` is a table's name, `key` the row's key as bytes. After a
# version without a note, as programs before 0005 raise it, nodes read the whole configuration.
configuration_change = Table(
    "configuration_change", metadata, Column("version", BigInteger, primary_key=True, autoincrement=False),
    _text("kind", key=True), Column("key", LargeBinary, primary_key=True),
    sqlite_with_rowid=False,
)  # fmt: skip

tenant = Table(
    "tenant", metadata, _text("id", key=True), _text("name"), _flag("strict"), _at("created_at"),
    sqlite_with_rowid=False,
)  # fmt: skip

event_type = Table(
    "event_type", metadata, _text("name", key=True), _text("description", optional=True),
    Column("schema", LargeBinary), _text("schema_version"), Column("policy", LargeBinary), _at("created_at"),
    Column("schemas", LargeBinary),  # JSON object: schemas of other versions; null: one schema for all
    sqlite_with_rowid=False,
)  # fmt: skip

endpoint = Table(
    "endpoint", metadata, _id("id", key=True), _text("tenant"), _text("url"),
    _text("event_types"),  # JSON array of patterns
    Column("policy", LargeBinary), _text("status"), _text("reason", optional=True),
    _count("failure_count", default="0"), _text("order"),
    _text("headers"),  # JSON object
    _text("description", optional=True), _at("created_at"), _at("updated_at"),
    Column("method", Text, nullable=False, server_default="POST"),
    Column("authentication", LargeBinary), Column("tls", LargeBinary),  # JSON objects with secrets (ledgers/custom.py)
    Column("receipts", LargeBinary),  # JSON object: the receipts wanted; null: none
    sqlite_with_rowid=False,
)  # fmt: skip
Index("endpoint_tenant", endpoint.c.tenant)

secret = Table(
    "secret", metadata, _id("endpoint", key=True), _id("id", key=True), _text("kind"),
    Column("material", LargeBinary, nullable=False), _at("created_at"), _at("expires_at", optional=True),
    sqlite_with_rowid=False,
)  # fmt: skip

api_key = Table(
    "api_key", metadata, _id("id", key=True), Column("digest", LargeBinary, nullable=False), _text("name"),
    _at("created_at"),
    sqlite_with_rowid=False,
)  # fmt: skip

# -- nodes --------------------------------------------------------------------------------------------

# `number` identifies the node in `delivery.holder`: a small integer keeps the index of held rows small.
node = Table(
    "node", metadata, Column("number", Number, primary_key=True), Column("id", Id, nullable=False, unique=True),
    _text("host"), _text("boot_id"), Column("pid", BigInteger, nullable=False), _at("started_at"),
    _at("buried_at", optional=True),
)  # fmt: skip

beat = Table(
    "beat", metadata, _id("node", key=True), Column("counter", BigInteger, nullable=False), _at("at"),
    sqlite_with_rowid=False,
)  # fmt: skip

# -- the hot path ------------------------------------------------------------------------------

# A table with row numbers beside the key: appending bodies of some hundred bytes to it is cheaper than to a tree ordered by
# the key (measured: 1.5 µs per event in batches of 64).
event = Table(
    "event", metadata, _id("id", key=True), _text("tenant"), _text("type"), _text("schema_version"),
    _text("subject", optional=True), Column("sequence", BigInteger), _text("workflow_version", optional=True),
    _text("correlation_id", optional=True), _text("causation_id", optional=True), _text("source", optional=True),
    _at("occurred_at", optional=True), _at("accepted_at"), Column("digest", LargeBinary(32), nullable=False),
    _count("fan_out"),
    Column("body", LargeBinary),  # null once its own lifetime is over
    _text("idempotency_key", optional=True),  # null too for events older than this column
    postgresql_partition_by="RANGE (id)",
)  # fmt: skip
_with_subject = event.c.subject.is_not(None)
_with_correlation = event.c.correlation_id.is_not(None)
Index(
    "event_subject", event.c.tenant, event.c.subject, event.c.id,
    sqlite_where=_with_subject, postgresql_where=_with_subject,
)  # fmt: skip
Index(
    "event_correlation", event.c.correlation_id, event.c.id,
    sqlite_where=_with_correlation, postgresql_where=_with_correlation,
)  # fmt: skip

# PostgreSQL indexes days when they are over; until then keys have a table of their own.
_with_key = event.c.idempotency_key.is_not(None)
Index("event_key", event.c.idempotency_key, event.c.id, sqlite_where=_with_key).ddl_if(dialect="sqlite")

# `holder` is a node's number; it and `parked` are never both set. `parked_at` is the time of parking.
delivery = Table(
    "delivery", metadata, _id("id", key=True), Column("holder", Number), _count("attempt"),
    Column("lane", SmallInteger, nullable=False), _at("due_at"), _text("parked", optional=True),
    _at("parked_at", optional=True), _id("endpoint"), _id("event"), _text("tenant"), _text("type"), _at("born_at"),
    Column("stood_ms", BigInteger, nullable=False, server_default="0"), _count("spared", default="0"),
    _count("freed", default="0"), _at("overdue_at", optional=True), _id("replay_of", optional=True),
    _text("outcome", optional=True), _flag("unknown"),
    _count("handed", default="0"),  # the epoch in which it was handed over to a broker; 0: it was not
    sqlite_with_rowid=False,
)  # fmt: skip
_ready = delivery.c.holder.is_(None) & delivery.c.parked.is_(None)
_parked = delivery.c.parked.is_not(None)
_held = delivery.c.holder.is_not(None)
_overdue = delivery.c.overdue_at.is_not(None)
# `holder` and `parked` are null in every entry; as columns they save SQLite a read of the row to know that. So do the endpoint
# and the tenant, by which claims skip rows; PostgreSQL's index lacks those two.
Index(
    "delivery_ready", delivery.c.lane, delivery.c.due_at, delivery.c.id, delivery.c.holder, delivery.c.parked,
    delivery.c.endpoint, delivery.c.tenant,
    sqlite_where=_ready, postgresql_where=_ready,
)  # fmt: skip
Index(
    "delivery_parked", delivery.c.endpoint, delivery.c.parked, delivery.c.id, delivery.c.lane,
    sqlite_where=_parked, postgresql_where=_parked,
)  # fmt: skip
Index(
    "delivery_held", delivery.c.holder, delivery.c.lane, delivery.c.id,
    sqlite_where=_held, postgresql_where=_held,
)  # fmt: skip
Index(
    "delivery_overdue", delivery.c.overdue_at, delivery.c.id,
    sqlite_where=_overdue, postgresql_where=_overdue,
)  # fmt: skip

# One row per lane: the epoch of new marks, the last watermark that came, and the node that sweeps (ports/handoff.py).
handoff = Table(
    "handoff", metadata, Column("lane", SmallInteger, primary_key=True, autoincrement=False),
    _count("generation"), _count("passed"), _id("sweeper", optional=True),
    sqlite_with_rowid=False,
)  # fmt: skip

# `outcome` and `unknown` of a row that is no request are those of the last request before it. Row numbers follow insertion,
# so pruning by age walks them and needs no index.
attempt = Table(
    "attempt", metadata, _id("delivery", key=True), Column("seq", BigInteger, primary_key=True),
    Column("lane", SmallInteger, nullable=False), _at("started_at"),
    _text("outcome", optional=True), _flag("unknown"), Column("status", SmallInteger), _text("error", optional=True),
    _text("address", optional=True), *(Column(f"{phase}_us", Number) for phase in
    ("dns", "connect", "tls", "first_byte", "total")), _flag("truncated"), _at("next_at", optional=True),
    _text("end", optional=True), _text("reason", optional=True), _at("finished_at", optional=True),
    _id("replay_of", optional=True), _text("tenant"), _id("endpoint"), _text("type"), _id("event"),
    Column("headers", LargeBinary, nullable=False), Column("body", LargeBinary, nullable=False),
    postgresql_partition_by="RANGE (delivery)",
)  # fmt: skip

# Ends other than `delivered` are few, and their lists are the most wanted. (PostgreSQL indexes days when they are over.)
_is_no_delivery = attempt.c.end.is_not(None) & (attempt.c.end != text("'delivered'"))
Index("attempt_ended", attempt.c.end, attempt.c.delivery, sqlite_where=_is_no_delivery).ddl_if(
    dialect="sqlite"
)

# Blocks, for lists (ledgers/blocks.py), on SQLite only. `cuts` are the first ids of a group's blocks after the first one, and
# the end of the group; `bits` are the blocks of a group that have the value. `upto` is the end of the newest group, `row` the
# last row number that was looked at, and `turn` counts how often row numbers were given back.
block_mark = Table(
    "block_mark", metadata, _text("source", key=True), Column("upto", LargeBinary, nullable=False),
    Column("row", BigInteger, nullable=False), _count("turn", default="0"),
    sqlite_with_rowid=False,
)  # fmt: skip
block_group = Table(
    "block_group", metadata, _text("source", key=True), Column("first", LargeBinary, primary_key=True),
    Column("cuts", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)  # fmt: skip
block_bits = Table(
    "block_bits", metadata, _text("source", key=True), Column("first", LargeBinary, primary_key=True),
    _text("field", key=True), Column("value", LargeBinary, primary_key=True),
    Column("bits", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)  # fmt: skip

# Dead deliveries that were neither replayed nor dismissed; their events and histories are kept. `request_headers` are those of
# the last request, a JSON object without secrets; null if there was none.
dead_letter = Table(
    "dead_letter", metadata, _id("delivery", key=True), Column("request_headers", LargeBinary),
    sqlite_with_rowid=False,
)  # fmt: skip
# Their number is the sum of all changes: one row on SQLite, where one process writes; on PostgreSQL one row per change since
# retention last added them up. Triggers on the table above write it.
dead_letter_count = Table("dead_letter_count", metadata, Column("change", BigInteger, nullable=False))
dismissed = Table(
    "dismissed", metadata, _id("delivery", key=True), _text("note"), _at("at"), sqlite_with_rowid=False
)
replayed = Table(
    "replayed", metadata, _id("original", key=True), _id("replacement"), _at("at"), sqlite_with_rowid=False
)

# Row numbers follow insertion, and so do the expiries of the keys: pruning needs no index.
idempotency = Table(
    "idempotency", metadata, _text("tenant", key=True), _text("key", key=True), _id("event"),
    Column("digest", LargeBinary(32), nullable=False), _count("fan_out"), _at("expires_at"),
)  # fmt: skip

# -- off the hot path -----------------------------------------------------------------------------------

notice = Table(
    "notice", metadata, _id("id", key=True), _at("at"), _text("kind"), _text("tenant"),
    _id("endpoint", optional=True), _id("delivery", optional=True), _text("detail"),
    sqlite_with_rowid=False,
)  # fmt: skip

health = Table(
    "health", metadata, _text("tenant", key=True), _text("key", key=True), _text("state"), _text("reason"),
    _at("opened_at"), _at("probe_at"), _count("failures"), _count("calls"),
    Column("generation", Instant, nullable=False, server_default=text("0")),
    sqlite_with_rowid=False,
)  # fmt: skip

# The last closing of each breaker that closed within a day, so that an opening that is written late does not undo it.
breaker_closed = Table(
    "breaker_closed", metadata, _text("tenant", key=True), _text("key", key=True), _at("generation"),
    sqlite_with_rowid=False,
)  # fmt: skip

replay = Table(
    "replay", metadata, _id("id", key=True), Column("filter", LargeBinary, nullable=False), _flag("dry_run"),
    _text("state"), _count("matched"), _count("created"), _at("created_at"), _at("finished_at", optional=True),
    Column("position", LargeBinary),
    sqlite_with_rowid=False,
)  # fmt: skip

# Receipts, by event and endpoint. A row is created by a receipt, or by a delivery whose end is awaited: without endpoints that
# want receipts there is none. `said` is the state as JSON, `stage` its rank, for lists; `delivery` the one whose end is awaited,
# or the first that a receipt named.
receipt = Table(
    "receipt", metadata, _id("event", key=True), _id("endpoint", key=True), _text("tenant"), _id("delivery"),
    Column("stage", SmallInteger, nullable=False, server_default="0"), Column("said", LargeBinary),
    _at("finalize_by", optional=True), _at("changed_at"),
    sqlite_with_rowid=False,
)  # fmt: skip
_awaited = receipt.c.finalize_by.is_not(None)
Index(
    "receipt_awaited", receipt.c.finalize_by, receipt.c.event, receipt.c.endpoint,
    sqlite_where=_awaited, postgresql_where=_awaited,
)  # fmt: skip
# For lists by stage. (On PostgreSQL retention builds it, like those of days, since the table may be large.)
_told = receipt.c.stage > 0
Index("receipt_told", receipt.c.stage, receipt.c.event, sqlite_where=_told).ddl_if(dialect="sqlite")
