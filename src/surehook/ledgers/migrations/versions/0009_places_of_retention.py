"""On PostgreSQL, the positions of retention, and notes of a day that is being retired (ledgers/postgres/retiring.py).

On SQLite the walk starts over with its one process, and there are no days.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        return
    op.create_table(
        "retention_place",
        sa.Column("walk", sa.Text(), nullable=False),
        sa.Column("place", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("walk", name=op.f("retention_place_pkey")),
    )
    op.create_table("retiring_note", sa.Column("event", sa.LargeBinary(), nullable=False))
    op.execute(
        """create function note_retiring() returns trigger language plpgsql as 'begin
          if tg_argv[0] = ''event'' then insert into retiring_note values (substr(new.id, 1, 10));
          elsif tg_argv[0] = ''attempt'' then insert into retiring_note values (substr(new.delivery, 1, 10));
          else insert into retiring_note values (substr(new.original, 1, 10));
          end if;
          return null;
        end'"""
    )
