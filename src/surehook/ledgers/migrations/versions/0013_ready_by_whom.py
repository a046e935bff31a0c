"""On one SQLite file, the index of ready rows also has their owners, so that claims which skip some read it alone.

PostgreSQL would read the row all the same, to check its visibility.
"""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        op.execute("DROP INDEX delivery_ready")
        op.execute(
            "CREATE INDEX delivery_ready ON delivery (lane, due_at, id, holder, parked, endpoint, tenant)"
            " WHERE holder IS NULL AND parked IS NULL"
        )
