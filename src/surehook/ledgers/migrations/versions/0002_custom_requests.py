"""Custom requests: an endpoint's method, its authentication, its own trust and certificate."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("endpoint", sa.Column("method", sa.Text(), server_default="POST", nullable=False))
    op.add_column("endpoint", sa.Column("authentication", sa.LargeBinary(), nullable=True))
    op.add_column("endpoint", sa.Column("tls", sa.LargeBinary(), nullable=True))
