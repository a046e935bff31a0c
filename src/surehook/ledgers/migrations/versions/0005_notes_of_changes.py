"""Notes of what each version of the configuration changed. Only adds: processes of 0004 work on, without notes."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "configuration_change",
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("key", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("version", "kind", "key", name=op.f("configuration_change_pkey")),
        sqlite_with_rowid=False,
    )
