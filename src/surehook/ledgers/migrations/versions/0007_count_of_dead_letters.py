"""The count of dead letters, maintained by triggers, so that writes of every version are counted.

On PostgreSQL each change is a row, so that no two transactions wait for each other, and retention adds them up. Inserted rows
are counted one by one, since windows without a dead letter must cost nothing; deleted ones by statement.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# What is dead is counted once no more can come beside the count: the triggers hold others off until the end.
POSTGRES = (
    """create function dead_letter_came() returns trigger language plpgsql as
    'begin insert into dead_letter_count (change) values (1); return null; end'""",
    """create function dead_letters_went() returns trigger language plpgsql as
    'begin insert into dead_letter_count (change) select -count(*) from gone having count(*) > 0; return null; end'""",
    """create or replace trigger dead_letter_came after insert on dead_letter
    for each row execute function dead_letter_came()""",
    """create or replace trigger dead_letters_went after delete on dead_letter referencing old table as gone
    for each statement execute function dead_letters_went()""",
    """alter table dead_letter_count set (
        autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0
    )""",
)
SQLITE = (
    """CREATE TRIGGER dead_letter_came AFTER INSERT ON dead_letter
    BEGIN UPDATE dead_letter_count SET change = change + 1; END""",
    """CREATE TRIGGER dead_letter_went AFTER DELETE ON dead_letter
    BEGIN UPDATE dead_letter_count SET change = change - 1; END""",
)


def upgrade() -> None:
    op.create_table("dead_letter_count", sa.Column("change", sa.BigInteger(), nullable=False))
    for statement in SQLITE if op.get_context().dialect.name == "sqlite" else POSTGRES:
        op.execute(statement)
    op.execute("INSERT INTO dead_letter_count (change) SELECT count(*) FROM dead_letter")
