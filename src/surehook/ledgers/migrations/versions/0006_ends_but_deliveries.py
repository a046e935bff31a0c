"""On one SQLite file, an index of ends that are no deliveries: dead, dropped, cancelled. Lists of them are asked for most.

PostgreSQL needs none: its days are walked along their ids, and indexed for lists when they are over.
"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        op.execute(
            'CREATE INDEX attempt_ended ON attempt ("end", delivery) WHERE "end" IS NOT NULL AND "end" != \'delivered\''
        )
