"""On PostgreSQL, notes of rows that became ready behind the position of claims (ledgers/postgres/strays.py).

A SQLite file has one process, which knows what it has written.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        return
    op.create_table(
        "stray",
        sa.Column("lane", sa.SmallInteger(), nullable=False),
        sa.Column("told", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("endpoint", sa.LargeBinary(), nullable=False),
        sa.Column("rows", ARRAY(sa.LargeBinary()), nullable=False),
        sa.PrimaryKeyConstraint("lane", "told", "number", name=op.f("stray_pkey")),
    )
    op.execute(
        """alter table stray set (
        autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0
        )"""
    )
