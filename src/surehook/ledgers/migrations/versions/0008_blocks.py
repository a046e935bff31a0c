"""Blocks, by which lists on one SQLite file skip stretches without a match. Only adds, and reads no rows: groups are made
while the server runs, oldest first, and rows without a group are walked as before."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "block_mark",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("upto", sa.LargeBinary(), nullable=False),
        sa.Column("row", sa.BigInteger(), nullable=False),
        sa.Column("turn", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("source", name=op.f("block_mark_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "block_group",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("first", sa.LargeBinary(), nullable=False),
        sa.Column("cuts", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("source", "first", name=op.f("block_group_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "block_bits",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("first", sa.LargeBinary(), nullable=False),
        sa.Column("field", sa.Text(), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.Column("bits", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("source", "first", "field", "value", name=op.f("block_bits_pkey")),
        sqlite_with_rowid=False,
    )
    if op.get_context().dialect.name == "sqlite":
        for source in ("attempt", "event"):
            op.execute(
                f"INSERT INTO block_mark (source, upto, row) SELECT '{source}', x'', coalesce(max(rowid), 0) FROM {source}"
            )
