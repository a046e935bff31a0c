"""The tables of an outbox by an application's own migrations."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import inspect

from surehook.ledgers.schema import metadata
from surehook.outbox import ddl
from tests.docs.pages import examples
from tests.outbox.conftest import OutboxDatabase, database_of

PAGE = "docs/publishing.md"


@pytest.fixture(params=["sqlite", "postgresql", pytest.param("mariadb", marks=pytest.mark.slow)])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OutboxDatabase]:
    yield from database_of(request.param, tmp_path)


def test_the_revision_of_the_page_makes_and_removes_the_tables(db: OutboxDatabase) -> None:
    with db.engine.begin() as connection:
        ddl.downgrade(connection)  # what the fixture made
        context = MigrationContext.configure(connection)
        scope: dict[str, Any] = {}
        with Operations.context(context):
            exec(compile(examples(PAGE)["alembic_revision"], PAGE, "exec"), scope)
            scope["upgrade"]()
            made = set(inspect(connection).get_table_names())
            assert made >= {"surehook_outbox", "surehook_outbox_refused", "surehook_outbox_sequence"}
            left = {name for name in made if ddl.include_name(name, "table", {})}
            assert left == {"document"}
            scope["downgrade"]()
        assert inspect(connection).get_table_names() == ["document"]


def test_a_dialect_that_there_is_not_is_named() -> None:
    with pytest.raises(ValueError, match="oracle"):
        ddl.statements("oracle")


def test_names_of_the_ledger_in_a_shared_file_are_left_alone_when_it_is_said() -> None:
    assert set(metadata.tables) | {"alembic_version"} == ddl.LEDGER_TABLES
    include = ddl.include_names(table="shop_outbox", ledger=True)
    names = ["shop_outbox", "shop_outbox_refused", "event", "document", "document_sequence"]
    assert [name for name in names if include(name, "table", {})] == ["document", "document_sequence"]
    assert ddl.include_name("event", "table", {})
    assert include("event", "column", {})


def test_the_tables_are_printed_where_alembic_has_no_connection() -> None:
    """`alembic upgrade --sql`."""
    said = io.StringIO()
    context = MigrationContext.configure(
        dialect_name="postgresql", opts={"as_sql": True, "output_buffer": said}
    )
    scope: dict[str, Any] = {}
    with Operations.context(context):
        exec(compile(examples(PAGE)["alembic_revision"], PAGE, "exec"), scope)
        scope["upgrade"]()
    assert "CREATE TABLE surehook_outbox (" in said.getvalue()
    assert "::bigint << 32" in said.getvalue()
