"""How Alembic runs here: it writes statements (see `script.py`); it never connects."""

from alembic import context

from surehook.ledgers.schema import metadata

context.configure(
    dialect_name=context.config.attributes.get("dialect", "sqlite"),
    target_metadata=metadata,
    literal_binds=True,
    transactional_ddl=False,  # the ledger brings its own transaction
)
context.run_migrations()
