"""Handing over to a broker: a mark on each open delivery, and one row a lane."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("delivery", sa.Column("handed", sa.Integer(), server_default="0", nullable=False))
    op.create_table(
        "handoff",
        sa.Column("lane", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("passed", sa.Integer(), nullable=False),
        sa.Column("sweeper", sa.LargeBinary(length=16), nullable=True),
        sa.PrimaryKeyConstraint("lane", name=op.f("handoff_pkey")),
        sqlite_with_rowid=False,
    )
    op.execute("insert into handoff (lane, generation, passed) values (0, 1, 0), (1, 1, 0)")
