select to_regclass('alembic_version') is not null
