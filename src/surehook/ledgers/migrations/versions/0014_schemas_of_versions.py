"""Schemas of several versions of one event type. Only adds: processes of 0013 work on, and judge by the type's own schema."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("event_type", sa.Column("schemas", sa.LargeBinary(), nullable=True))
