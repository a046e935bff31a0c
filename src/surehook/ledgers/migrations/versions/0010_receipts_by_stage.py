"""On one SQLite file, an index of receipts by stage, for lists: without it they would look at every delivery.

On PostgreSQL creating an index on a table with rows makes everybody wait, so retention builds it, like those of days.
"""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        op.execute("CREATE INDEX receipt_told ON receipt (stage, event) WHERE stage > 0")
