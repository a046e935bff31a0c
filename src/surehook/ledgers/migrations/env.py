"""Alembic's environment: it only writes statements (see `script.py`), and never connects."""

from alembic import context

from surehook.ledgers.schema import metadata

context.configure(
    dialect_name=context.config.attributes.get("dialect", "sqlite"),
    target_metadata=metadata,
    literal_binds=True,
    # The ledger brings its own transaction.
    transactional_ddl=False,
)
context.run_migrations()
