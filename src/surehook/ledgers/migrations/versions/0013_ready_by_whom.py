"""On one SQLite file, ready rows tell in their index whose they are: looks past those who have enough read it alone.

PostgreSQL would look at the row all the same, to see whether it is there for everybody.
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
