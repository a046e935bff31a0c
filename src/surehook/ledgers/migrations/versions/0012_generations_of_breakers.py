"""Breakers with the generation of their last decision, and stored closings, so that a late write undoes nothing newer.

On PostgreSQL an older version writes no generation: triggers derive that of its openings from their instant, refuse openings
older than the current state, and store its closings. A SQLite file has one process, so it needs none.
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

POSTGRES = (
    """create function breaker_opens() returns trigger language plpgsql as '
    declare
      is_untold boolean := new.generation = 0;
    begin
      if tg_op = ''UPDATE'' then
        is_untold := new.generation = old.generation and new.opened_at <> old.opened_at;
      end if;
      if is_untold then
        new.generation := new.opened_at;
        if tg_op = ''UPDATE'' and new.generation < old.generation then
          return null;
        end if;
        if exists (select from breaker_closed c
                   where c.tenant = new.tenant and c.key = new.key and c.generation >= new.generation) then
          return null;
        end if;
      end if;
      return new;
    end '""",
    """create function breaker_closes() returns trigger language plpgsql as '
    begin
      insert into breaker_closed as known (tenant, key, generation) values (old.tenant, old.key, old.generation)
      on conflict (tenant, key) do update set generation = excluded.generation
      where known.generation < excluded.generation;
      return null;
    end '""",
    """create or replace trigger breaker_opens before insert or update on health
    for each row execute function breaker_opens()""",
    """create or replace trigger breaker_closes after delete on health
    for each row execute function breaker_closes()""",
)


def upgrade() -> None:
    is_sqlite = op.get_context().dialect.name == "sqlite"
    op.create_table(
        "breaker_closed",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "key", name=op.f("breaker_closed_pkey")),
        sqlite_with_rowid=False,
    )
    op.add_column(
        "health", sa.Column("generation", sa.BigInteger(), nullable=False, server_default=sa.text("0"))
    )
    op.execute("UPDATE health SET generation = opened_at")
    if not is_sqlite:
        for statement in POSTGRES:
            op.execute(statement)
