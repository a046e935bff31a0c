"""The idempotency key of an event, beside the event. Only adds: processes of 0015 work on, and keep none.

On one SQLite file with an index, for which the file is read once. On PostgreSQL retention makes it, day by day.
"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("event", sa.Column("idempotency_key", sa.Text(), nullable=True))
    if op.get_context().dialect.name == "sqlite":
        op.execute("CREATE INDEX event_key ON event (idempotency_key, id) WHERE idempotency_key IS NOT NULL")
