"""Request headers of dead letters. Only adds: processes of 0014 work on, and keep none."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("dead_letter", sa.Column("request_headers", sa.LargeBinary(), nullable=True))
