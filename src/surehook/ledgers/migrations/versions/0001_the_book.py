"""The tables of the first release."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Days are partitions, made ahead by the ledger. What lies in none is kept beside them: events and histories
# that were still needed when their day was dropped, and, as a net, ids of a day that nobody has made yet.
# The hot table and the one of beats are small and change all the time: room in their pages for the next
# version, and vacuum before dead rows are many.
POSTGRES = (
    "create table event_kept partition of event default",
    "create table attempt_kept partition of attempt default",
    """alter table delivery set (
        fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_analyze_scale_factor = 0.1,
        autovacuum_vacuum_cost_delay = 0
    )""",
    "alter table node set (fillfactor = 50)",
    "alter table beat set (fillfactor = 10, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0)",
    "alter table endpoint set (fillfactor = 50)",
)


def upgrade() -> None:
    op.create_table(
        "api_key",
        sa.Column("id", sa.LargeBinary(length=16), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("api_key_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "attempt",
        sa.Column("delivery", sa.LargeBinary(length=16), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("lane", sa.SmallInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("unknown", sa.Boolean(), server_default="0", nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("dns_us", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("connect_us", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("tls_us", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("first_byte_us", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("total_us", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("truncated", sa.Boolean(), server_default="0", nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=True),
        sa.Column("end", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("replay_of", sa.LargeBinary(length=16), nullable=True),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("endpoint", sa.LargeBinary(length=16), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("event", sa.LargeBinary(length=16), nullable=False),
        sa.Column("headers", sa.LargeBinary(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("delivery", "seq", name=op.f("attempt_pkey")),
        postgresql_partition_by="RANGE (delivery)",
    )
    op.create_table(
        "beat",
        sa.Column("node", sa.LargeBinary(length=16), nullable=False),
        sa.Column("counter", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("node", name=op.f("beat_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "configuration",
        sa.Column("id", sa.SmallInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("lag_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("configuration_pkey")),
    )
    op.create_table(
        "dead_letter",
        sa.Column("delivery", sa.LargeBinary(length=16), nullable=False),
        sa.PrimaryKeyConstraint("delivery", name=op.f("dead_letter_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "delivery",
        sa.Column("id", sa.LargeBinary(length=16), nullable=False),
        sa.Column("holder", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("lane", sa.SmallInteger(), nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("parked", sa.Text(), nullable=True),
        sa.Column("parked_at", sa.BigInteger(), nullable=True),
        sa.Column("endpoint", sa.LargeBinary(length=16), nullable=False),
        sa.Column("event", sa.LargeBinary(length=16), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("born_at", sa.BigInteger(), nullable=False),
        sa.Column("stood_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("spared", sa.Integer(), server_default="0", nullable=False),
        sa.Column("freed", sa.Integer(), server_default="0", nullable=False),
        sa.Column("overdue_at", sa.BigInteger(), nullable=True),
        sa.Column("replay_of", sa.LargeBinary(length=16), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("unknown", sa.Boolean(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("delivery_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "delivery_held",
        "delivery",
        ["holder", "lane", "id"],
        unique=False,
        sqlite_where=sa.text("holder IS NOT NULL"),
        postgresql_where=sa.text("holder IS NOT NULL"),
    )
    op.create_index(
        "delivery_overdue",
        "delivery",
        ["overdue_at", "id"],
        unique=False,
        sqlite_where=sa.text("overdue_at IS NOT NULL"),
        postgresql_where=sa.text("overdue_at IS NOT NULL"),
    )
    op.create_index(
        "delivery_parked",
        "delivery",
        ["endpoint", "parked", "id", "lane"],
        unique=False,
        sqlite_where=sa.text("parked IS NOT NULL"),
        postgresql_where=sa.text("parked IS NOT NULL"),
    )
    op.create_index(
        "delivery_ready",
        "delivery",
        ["lane", "due_at", "id", "holder", "parked"],
        unique=False,
        sqlite_where=sa.text("holder IS NULL AND parked IS NULL"),
        postgresql_where=sa.text("holder IS NULL AND parked IS NULL"),
    )
    op.create_table(
        "dismissed",
        sa.Column("delivery", sa.LargeBinary(length=16), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("delivery", name=op.f("dismissed_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "endpoint",
        sa.Column("id", sa.LargeBinary(length=16), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("event_types", sa.Text(), nullable=False),
        sa.Column("policy", sa.LargeBinary(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("failure_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("order", sa.Text(), nullable=False),
        sa.Column("headers", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("endpoint_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_index("endpoint_tenant", "endpoint", ["tenant"], unique=False)
    op.create_table(
        "event",
        sa.Column("id", sa.LargeBinary(length=16), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("schema_version", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("sequence", sa.BigInteger(), nullable=True),
        sa.Column("workflow_version", sa.Text(), nullable=True),
        sa.Column("correlation_id", sa.Text(), nullable=True),
        sa.Column("causation_id", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=True),
        sa.Column("occurred_at", sa.BigInteger(), nullable=True),
        sa.Column("accepted_at", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.LargeBinary(length=32), nullable=False),
        sa.Column("fan_out", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("event_pkey")),
        postgresql_partition_by="RANGE (id)",
    )
    op.create_index(
        "event_correlation",
        "event",
        ["correlation_id", "id"],
        unique=False,
        sqlite_where=sa.text("correlation_id IS NOT NULL"),
        postgresql_where=sa.text("correlation_id IS NOT NULL"),
    )
    op.create_index(
        "event_subject",
        "event",
        ["tenant", "subject", "id"],
        unique=False,
        sqlite_where=sa.text("subject IS NOT NULL"),
        postgresql_where=sa.text("subject IS NOT NULL"),
    )
    op.create_table(
        "event_type",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("schema", sa.LargeBinary(), nullable=True),
        sa.Column("schema_version", sa.Text(), nullable=False),
        sa.Column("policy", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("event_type_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "health",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("opened_at", sa.BigInteger(), nullable=False),
        sa.Column("probe_at", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "key", name=op.f("health_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "idempotency",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("event", sa.LargeBinary(length=16), nullable=False),
        sa.Column("digest", sa.LargeBinary(length=32), nullable=False),
        sa.Column("fan_out", sa.Integer(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "key", name=op.f("idempotency_pkey")),
    )
    op.create_table(
        "node",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("id", sa.LargeBinary(length=16), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("buried_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("number", name=op.f("node_pkey")),
        sa.UniqueConstraint("id"),
    )
    op.create_table(
        "notice",
        sa.Column("id", sa.LargeBinary(length=16), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("endpoint", sa.LargeBinary(length=16), nullable=True),
        sa.Column("delivery", sa.LargeBinary(length=16), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("notice_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "replay",
        sa.Column("id", sa.LargeBinary(length=16), nullable=False),
        sa.Column("filter", sa.LargeBinary(), nullable=False),
        sa.Column("dry_run", sa.Boolean(), server_default="0", nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("matched", sa.Integer(), nullable=False),
        sa.Column("created", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("position", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("replay_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "replayed",
        sa.Column("original", sa.LargeBinary(length=16), nullable=False),
        sa.Column("replacement", sa.LargeBinary(length=16), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("original", name=op.f("replayed_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "secret",
        sa.Column("endpoint", sa.LargeBinary(length=16), nullable=False),
        sa.Column("id", sa.LargeBinary(length=16), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("material", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("endpoint", "id", name=op.f("secret_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "tenant",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("strict", sa.Boolean(), server_default="0", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("tenant_pkey")),
        sqlite_with_rowid=False,
    )
    op.execute("insert into configuration (id, version, lag_ms) values (1, 1, 4096)")
    if op.get_context().dialect.name == "postgresql":
        for statement in POSTGRES:
            op.execute(statement)
