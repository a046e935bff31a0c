"""Receipts: whether an endpoint asks for them, and what receivers said. Only adds: processes of 0003 work on."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("endpoint", sa.Column("receipts", sa.LargeBinary(), nullable=True))
    op.create_table(
        "receipt",
        sa.Column("event", sa.LargeBinary(length=16), nullable=False),
        sa.Column("endpoint", sa.LargeBinary(length=16), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("delivery", sa.LargeBinary(length=16), nullable=False),
        sa.Column("stage", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("said", sa.LargeBinary(), nullable=True),
        sa.Column("finalize_by", sa.BigInteger(), nullable=True),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("event", "endpoint", name=op.f("receipt_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "receipt_awaited",
        "receipt",
        ["finalize_by", "event", "endpoint"],
        unique=False,
        sqlite_where=sa.text("finalize_by IS NOT NULL"),
        postgresql_where=sa.text("finalize_by IS NOT NULL"),
    )
